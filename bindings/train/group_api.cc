// The functions of group_api.h, over LocalCommunicator.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <utility>

#include "bindings/train/groups.h"

struct TroupeGroup {
  std::shared_ptr<troupe::train::LocalCommunicator> group;
  std::atomic<int> users{1};
  const pid_t pid = getpid();
};

namespace troupe::bindings {
namespace {

using train::LocalWork;

// A library that is built later goes by the header's numbers, and this process by its own.
#define TROUPE_SAME(kind, name) \
  static_assert(static_cast<int>(train::kind::k##name) == kTroupe##name, #kind "::k" #name)
TROUPE_SAME(Collective, AllReduce);
TROUPE_SAME(Collective, Broadcast);
TROUPE_SAME(Collective, Reduce);
TROUPE_SAME(Collective, AllGather);
TROUPE_SAME(Collective, ReduceScatter);
TROUPE_SAME(Collective, AllToAll);
TROUPE_SAME(Collective, Send);
TROUPE_SAME(Collective, Recv);
TROUPE_SAME(Collective, Gather);
TROUPE_SAME(Collective, Scatter);
TROUPE_SAME(Collective, Barrier);
TROUPE_SAME(DataType, Int8);
TROUPE_SAME(DataType, Uint8);
TROUPE_SAME(DataType, Int32);
TROUPE_SAME(DataType, Uint32);
TROUPE_SAME(DataType, Int64);
TROUPE_SAME(DataType, Uint64);
TROUPE_SAME(DataType, Float16);
TROUPE_SAME(DataType, Float32);
TROUPE_SAME(DataType, Float64);
TROUPE_SAME(DataType, Bfloat16);
TROUPE_SAME(DataType, Int16);
TROUPE_SAME(DataType, Uint16);
TROUPE_SAME(DataType, Bool);
TROUPE_SAME(ReduceOp, Sum);
TROUPE_SAME(ReduceOp, Prod);
TROUPE_SAME(ReduceOp, Max);
TROUPE_SAME(ReduceOp, Min);
TROUPE_SAME(ReduceOp, Avg);
TROUPE_SAME(ReduceOp, BitAnd);
TROUPE_SAME(ReduceOp, BitOr);
TROUPE_SAME(ReduceOp, BitXor);
#undef TROUPE_SAME

void Retain(TroupeGroup* handle) { ++handle->users; }

void Release(TroupeGroup* handle) {
  if (--handle->users != 0) return;
  if (handle->pid != getpid()) return;  // a forked child has none of its threads
  auto group = std::move(handle->group);
  delete handle;
  group->Leave();
  train::LeaveInProcess(std::move(group));
}

int Start(TroupeGroup* handle, const TroupeOperation* asked, TroupeDone done, void* context,
          char* error, std::size_t error_bytes) {
  const auto ranks = static_cast<std::size_t>(handle->group->size());
  train::Operation operation;
  operation.kind = static_cast<train::Collective>(asked->kind);
  operation.type = train::DataType{asked->type};
  operation.op = train::ReduceOp{asked->op};
  operation.root = asked->root;
  operation.tag = asked->tag;
  operation.send = asked->send;
  operation.recv = asked->recv;
  operation.count = asked->count;
  operation.most = std::chrono::milliseconds(asked->most_ms);
  if (asked->send_counts != nullptr) operation.send_counts = {asked->send_counts, ranks};
  if (asked->recv_counts != nullptr) operation.recv_counts = {asked->recv_counts, ranks};
  auto work = handle->group->StartLocal({&operation, 1});
  if (!work.ok()) {
    std::snprintf(error, error_bytes, "%s", MessageOf(work.status()).c_str());
    return 1;
  }
  (*work)->Then([done, context](const LocalWork& ended, const Status& status) {
    const std::string text = status.ok() ? std::string() : MessageOf(status);
    done(context, status.ok() ? nullptr : text.c_str(), ended.source());
  });
  return 0;
}

void Stop(TroupeGroup* handle, const char* reason) { handle->group->Stop(reason); }

constexpr TroupeGroupApi kApi = {TROUPE_GROUP_API_VERSION, Retain, Release, Start, Stop};

}  // namespace

TroupeGroup* NewGroupHandle(std::shared_ptr<train::LocalCommunicator> group) {
  auto* const handle = new TroupeGroup;
  handle->group = std::move(group);
  return handle;
}

const TroupeGroupApi* GroupApi() { return &kApi; }

}  // namespace troupe::bindings
