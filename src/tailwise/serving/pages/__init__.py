"""The pages of the service: plain HTML, CSS and JavaScript modules, served as they are (``serving.web``)."""
