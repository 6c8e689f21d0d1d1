"""What reports are made of: pages, styles, pictures, facts about the machine."""
