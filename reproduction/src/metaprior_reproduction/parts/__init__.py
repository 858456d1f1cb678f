"""What items are made of: the form of an item, and the methods, figures and verdicts that several of them share."""
