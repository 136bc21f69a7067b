# The image of the operator: the static binary and nothing else.
# The build context is a directory that contains just the file `etcd-operator`.
FROM scratch
COPY etcd-operator /etcd-operator
USER 65532:65532
ENTRYPOINT ["/etcd-operator"]
CMD ["run"]
