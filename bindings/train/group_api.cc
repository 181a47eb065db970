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

void Retain(TroupeGroup* handle) { ++handle->users; }

void Release(TroupeGroup* handle) {
  if (--handle->users != 0) return;
  if (handle->pid != getpid()) return;  // a forked child has none of its threads
  auto group = std::move(handle->group);
  delete handle;
  group->Leave();
  LeaveGroup(std::move(group));
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
