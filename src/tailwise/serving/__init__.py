"""The service: models behind a REST API that Annif's clients know, and the page in front of them.

``tailwise serve MODEL`` is how it is started; :func:`~tailwise.serving.app.create_app` makes the ASGI application for
whoever has a server of their own. Needs the extra ``serve``.
"""
