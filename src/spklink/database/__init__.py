"""Who took part in which conversation, how their tracks are numbered, what people say of them."""
