"""The routes below ``/v1``, one module per resource."""
