"""Store extracted observations: recognise repetitions, confirm known ones, and propose preferences."""
