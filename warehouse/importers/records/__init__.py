"""Result records of tools whose fields catalog/record_fields.csv names: one reader for all of them."""
