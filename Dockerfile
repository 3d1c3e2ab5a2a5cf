FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir '/src[onnx,excel]' && rm -rf /src
RUN NUMBA_CACHE_DIR=/var/cache/spklink python -m spklink.cli.compile && chmod -R a+rwX /var/cache/spklink
ENV NUMBA_CACHE_DIR=/var/cache/spklink
WORKDIR /data
ENTRYPOINT ["spklink"]
