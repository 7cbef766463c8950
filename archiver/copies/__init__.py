"""How are the bytes kept?"""
