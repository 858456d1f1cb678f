# The demo of the README in a container:
#   docker build --tag metaprior .
#   docker run --name demo metaprior
#   docker cp demo:/home/metaprior/project/sinusoid.png .
# To keep compiled programs for the next run: --volume metaprior-cache:/home/metaprior/.cache/metaprior
FROM python:3.11-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home metaprior

USER metaprior
RUN mkdir --parents /home/metaprior/project /home/metaprior/.cache/metaprior
WORKDIR /home/metaprior/project
ENV METAPRIOR_CACHE=/home/metaprior/.cache/metaprior \
    MPLBACKEND=Agg

COPY --chown=metaprior:metaprior Makefile pyproject.toml README.md LICENSE ./
COPY --chown=metaprior:metaprior src src
COPY --chown=metaprior:metaprior examples examples
RUN make .venv/.installed-plot

CMD ["make", "demo"]
