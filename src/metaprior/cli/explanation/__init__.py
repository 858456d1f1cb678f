"""The page of `metaprior explain`: what is told (`subject`), how it is drawn (`figures`), and the page (`page`)."""
