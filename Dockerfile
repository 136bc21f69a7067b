# The image of the operator: two static binaries and nothing else. The gate is for the pods of members.
# The build context is a directory that contains just the files `etcd-operator` and `gate`.
FROM scratch
COPY etcd-operator gate /
USER 65532:65532
ENTRYPOINT ["/etcd-operator"]
CMD ["run"]
