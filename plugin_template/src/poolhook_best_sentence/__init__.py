"""A poolhook plugin: which sentence of a document is most like a question?

The plugin is `poolhook_best_sentence.processor`; nothing is imported here, so that this package costs nothing until
somebody selects it.
"""
