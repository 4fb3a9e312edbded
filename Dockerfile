# docker build -t lacuna .                          CPU
# docker build -t lacuna:cuda --build-arg PRESET=cuda --build-arg BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04 .
# docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" -w /data lacuna train -c config.yaml
ARG BASE=debian:12
FROM ${BASE}
ARG PRESET=cpu
ARG PIP_NO_CACHE_DIR=1
RUN useradd --create-home lacuna
WORKDIR /opt/lacuna
COPY . .
RUN if [ "$PRESET" = cuda ]; then scripts/setup.sh --cuda; else scripts/setup.sh; fi \
 && scripts/build.sh "$PRESET" lacuna \
 && find "build/$PRESET" -mindepth 1 -maxdepth 1 ! -name lacuna -exec rm -rf {} + \
 && ln -s "/opt/lacuna/build/$PRESET/lacuna" /usr/local/bin/lacuna \
 && rm -rf /var/lib/apt/lists/*
USER lacuna
WORKDIR /home/lacuna
ENTRYPOINT ["lacuna"]
