"""What may nobody see?"""
