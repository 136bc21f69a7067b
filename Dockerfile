# The image of the operator: three static binaries and nothing else. The gate is for the pods of members, the agent for
# those of backups and restores. The build context is a directory that contains just these files.
FROM scratch
COPY etcd-operator gate agent /
USER 65532:65532
ENTRYPOINT ["/etcd-operator"]
CMD ["run"]
