"""What a study leaves behind: numbers, pictures, pages, and all of them as a book."""
