"""Store extracted observations: detect repetitions, confirm known observations, and propose preferences."""
