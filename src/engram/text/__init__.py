"""Reading text: index terms, stems, entities, numbers, time phrases, content hashes."""
