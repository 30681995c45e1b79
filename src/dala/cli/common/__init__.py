"""Parts that commands share: arguments, inputs, chains of filters, pipes and signals."""
