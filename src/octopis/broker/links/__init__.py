"""What a broker has to do with its neighbours: links, changes of tables, notices, channels."""
