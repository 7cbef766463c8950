"""Do memories in files stay what people made of them?"""
