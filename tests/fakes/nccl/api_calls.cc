// The exported collectives, sends and receives, and groups of calls.
#include "tests/fakes/nccl/entry.h"
#include "tests/fakes/nccl/group.h"

using namespace troupe::fakes;
using namespace troupe::train;

extern "C" {

NcclResult ncclGroupStart() {
  BeginGroup();
  return NcclResult::kSuccess;
}
NcclResult ncclGroupEnd() { return EndGroup(); }

NcclResult ncclAllReduce(const void* send, void* recv, std::size_t count, NcclType type, NcclOp op,
                         NcclComm comm, CudaStream stream) {
  return Begin(comm, {Kind::kAllReduce, send, recv, count, type, op, 0}, stream);
}
NcclResult ncclBroadcast(const void* send, void* recv, std::size_t count, NcclType type, int root,
                         NcclComm comm, CudaStream stream) {
  return Begin(comm, {Kind::kBroadcast, send, recv, count, type, {}, root}, stream);
}
NcclResult ncclReduce(const void* send, void* recv, std::size_t count, NcclType type, NcclOp op,
                      int root, NcclComm comm, CudaStream stream) {
  return Begin(comm, {Kind::kReduce, send, recv, count, type, op, root}, stream);
}
NcclResult ncclAllGather(const void* send, void* recv, std::size_t count, NcclType type,
                         NcclComm comm, CudaStream stream) {
  return Begin(comm, {Kind::kAllGather, send, recv, count, type, {}, 0}, stream);
}
NcclResult ncclReduceScatter(const void* send, void* recv, std::size_t count, NcclType type,
                             NcclOp op, NcclComm comm, CudaStream stream) {
  return Begin(comm, {Kind::kReduceScatter, send, recv, count, type, op, 0}, stream);
}
NcclResult ncclAlltoAll(const void* send, void* recv, std::size_t count, NcclType type,
                        NcclComm comm, CudaStream stream) {
  return Begin(comm, {Kind::kAllToAll, send, recv, count, type, {}, 0}, stream);
}
NcclResult ncclSend(const void* send, std::size_t count, NcclType type, int peer, NcclComm comm,
                    CudaStream stream) {
  return Begin(comm, {Kind::kSend, send, nullptr, count, type, {}, peer}, stream);
}
NcclResult ncclRecv(void* recv, std::size_t count, NcclType type, int peer, NcclComm comm,
                    CudaStream stream) {
  return Begin(comm, {Kind::kRecv, nullptr, recv, count, type, {}, peer}, stream);
}

}  // extern "C"
