"""Operations of people and the worker on vendors: connect, discover, review, probe, explain. Calls do not use them."""
