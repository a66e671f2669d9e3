"""The five services: thin APIs over one engine, with the names of their requirement documents."""
