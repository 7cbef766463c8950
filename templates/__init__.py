"""How is it shown?"""
