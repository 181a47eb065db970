// torch's process groups over the communicator of group_api.h: a c10d::Backend for tensors on CPUs.
// Compiled against exactly the torch that will load it, when a program first asks for it
// (build.py), and knows nothing of the extension but that header.
#include <torch/csrc/utils/pybind.h>
#include <torch/python.h>

#include <numeric>
#include <optional>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "group_api.h"
#include "tensors.h"
#include "work.h"

namespace troupe_torch {
namespace {

using c10d::OpType;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class GroupBackend : public c10d::Backend {
 public:
  GroupBackend(const TroupeGroupApi* api, TroupeGroup* group, int rank, int size,
               int64_t timeout_ms)
      : Backend(rank, size), api_(api), group_(group), timeout_ms_(timeout_ms) {}
  ~GroupBackend() override { api_->release(group_); }

  const std::string getBackendName() const override { return "troupe"; }
  void abort() override {
    api_->stop(group_, ("rank " + std::to_string(getRank()) + " has aborted the group").c_str());
  }
  void shutdown() override {}
  void setTimeout(std::chrono::milliseconds most) override { timeout_ms_ = most.count(); }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return seq_; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return reduce_each(OpType::ALLREDUCE, {one(tensors)}, kTroupeAllReduce, op_of(options.reduceOp),
                       0);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return reduce_each(OpType::ALLREDUCE_COALESCED, tensors, kTroupeAllReduce,
                       op_of(options.reduceOp), 0);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return reduce_each(OpType::REDUCE, {one(tensors)}, kTroupeReduce, op_of(options.reduceOp),
                       static_cast<int>(options.rootRank));
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const Tensor tensor = one(tensors), flat = tensor.contiguous();
    TroupeOperation operation =
        bytes(kTroupeBroadcast, flat.data_ptr(), flat.data_ptr(), flat.nbytes());
    operation.root = static_cast<int>(options.rootRank);
    return start(OpType::BROADCAST, {tensor}, {operation}, {flat}, copies_back({tensor}, {flat}));
  }

  WorkPtr _allgather_base(Tensor& output, Tensor& input, const c10d::AllgatherOptions&) override {
    return gather_into(OpType::_ALLGATHER_BASE, {output}, {input});
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions&) override {
    return gather_into(OpType::ALLGATHER_COALESCED, outputs, inputs);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions&) override {
    TORCH_CHECK_VALUE(outputs.size() == 1, "one list of outputs for one input");
    return gather_apart(OpType::ALLGATHER, kTroupeAllGather, 0, outputs[0], one(inputs), true);
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    const bool gets = options.rootRank == getRank();
    TORCH_CHECK_VALUE(outputs.size() == (gets ? 1 : 0),
                      "the root of a gather, and no other rank, has one list of outputs");
    return gather_apart(OpType::GATHER, kTroupeGather, static_cast<int>(options.rootRank),
                        gets ? outputs[0] : Tensors{}, one(inputs), gets);
  }

  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    const Tensor output = one(outputs), flat = output.contiguous();
    const bool gives = options.rootRank == getRank();
    TORCH_CHECK_VALUE(inputs.size() == (gives ? 1 : 0),
                      "the root of a scatter, and no other rank, has one list of inputs");
    const Tensor all = gives ? together(inputs[0], output) : Tensor();
    TroupeOperation operation =
        bytes(kTroupeScatter, gives ? all.data_ptr() : nullptr, flat.data_ptr(), flat.nbytes());
    operation.root = static_cast<int>(options.rootRank);
    return start(OpType::SCATTER, {output}, {operation}, {flat, all},
                 copies_back({output}, {flat}));
  }

  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    TORCH_CHECK_VALUE(inputs.size() == 1, "one list of inputs for one output");
    return scatter_reduced(OpType::REDUCE_SCATTER, {one(outputs)},
                           {together(inputs[0], outputs[0])}, op_of(options.reduceOp));
  }
  WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return scatter_reduced(OpType::_REDUCE_SCATTER_BASE, {output}, {input},
                           op_of(options.reduceOp));
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return scatter_reduced(OpType::COALESCED, outputs, inputs, op_of(options.reduceOp));
  }

  WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions&) override {
    check_tensors({output, input});
    const Tensor to = output.contiguous(), from = input.contiguous();
    const auto ranks = static_cast<size_t>(getSize());
    c10d::checkSplitSizes(input_splits, input, getSize());
    c10d::checkSplitSizes(output_splits, output, getSize());
    TroupeOperation operation = bytes(kTroupeAllToAll, from.data_ptr(), to.data_ptr(), 0);
    // Ranks may give splits or not as long as they agree: all say what they exchange.
    std::vector<size_t> send(ranks), recv(ranks), offsets(ranks);
    c10d::computeLengthsAndOffsets(input_splits, from, &send, &offsets);
    c10d::computeLengthsAndOffsets(output_splits, to, &recv, &offsets);
    for (auto& each : send) each *= from.element_size();
    for (auto& each : recv) each *= to.element_size();
    operation.send_counts = send.data();
    operation.recv_counts = recv.data();
    return start(OpType::ALLTOALL_BASE, {output}, {operation}, {to, from},
                 copies_back({output}, {to}));
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) override {
    const auto ranks = static_cast<size_t>(getSize());
    TORCH_CHECK_VALUE(outputs.size() == ranks && inputs.size() == ranks,
                      "one input and one output for each of ", ranks, " ranks");
    check_tensors(outputs);
    check_tensors(inputs);
    std::vector<size_t> send, recv;
    Tensors flats, parts;
    for (size_t rank = 0; rank < ranks; ++rank) {
      send.push_back(inputs[rank].nbytes());
      recv.push_back(outputs[rank].nbytes());
      flats.push_back(inputs[rank].reshape({-1}));
    }
    const Tensor from = at::cat(flats);
    const auto total = std::accumulate(recv.begin(), recv.end(), size_t{0});
    const Tensor to =
        at::empty({static_cast<int64_t>(total / from.element_size())}, from.options());
    TroupeOperation operation = bytes(kTroupeAllToAll, from.data_ptr(), to.data_ptr(), 0);
    operation.send_counts = send.data();
    operation.recv_counts = recv.data();
    return start(OpType::ALLTOALL, outputs, {operation}, {from, to}, [outputs, to] {
      int64_t at = 0;
      for (const auto& output : outputs) {
        Tensor(output).copy_(to.narrow(0, at, output.numel()).view(output.sizes()));
        at += output.numel();
      }
    });
  }

  WorkPtr send(Tensors& tensors, int to, int tag) override {
    const Tensor flat = one(tensors).contiguous();
    TroupeOperation operation = bytes(kTroupeSend, flat.data_ptr(), nullptr, flat.nbytes());
    operation.root = to;
    operation.tag = tag;
    return start(OpType::SEND, {}, {operation}, {flat}, {});
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return receive(OpType::RECV, one(tensors), from, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return receive(OpType::RECVANYSOURCE, one(tensors), -1, tag);
  }

  WorkPtr barrier(const c10d::BarrierOptions&) override {
    return start(OpType::BARRIER, {}, {bytes(kTroupeBarrier, nullptr, nullptr, 0)}, {}, {});
  }

 private:
  static TroupeOperation bytes(TroupeKind kind, const void* send, void* recv, size_t count) {
    return {kind, kTroupeUint8, kTroupeSum, 0, 0, send, recv, count, nullptr, nullptr, 0};
  }

  /// Returns a function that writes results into tensors that are not contiguous; empty if all are.
  static std::function<void()> copies_back(const Tensors& tensors, const Tensors& flats) {
    bool all_same = true;
    for (size_t i = 0; i < tensors.size(); ++i) all_same = all_same && tensors[i].is_same(flats[i]);
    if (all_same) return {};
    return [tensors, flats] {
      for (size_t i = 0; i < tensors.size(); ++i)
        if (!tensors[i].is_same(flats[i])) Tensor(tensors[i]).copy_(flats[i]);
    };
  }

  /// Tensors like `like`, one for each rank, in one piece.
  Tensor together(const Tensors& parts, const Tensor& like) const {
    TORCH_CHECK_VALUE(parts.size() == static_cast<size_t>(getSize()), "one tensor for each of ",
                      getSize(), " ranks, not ", parts.size());
    Tensor all = at::empty({getSize(), like.numel()},
                           like.options().memory_format(at::MemoryFormat::Contiguous));
    for (int64_t rank = 0; rank < getSize(); ++rank) {
      const Tensor& part = parts[static_cast<size_t>(rank)];
      check_tensor(part);
      TORCH_CHECK_VALUE(part.numel() == like.numel() && part.scalar_type() == like.scalar_type(),
                        "tensors of one size and type");
      all[rank].copy_(part.reshape({-1}));
    }
    return all;
  }

  WorkPtr reduce_each(OpType type, const Tensors& tensors, TroupeKind kind, int op, int root) {
    std::vector<TroupeOperation> operations;
    Tensors flats;
    check_tensors(tensors);
    for (const auto& tensor : tensors) {
      const Tensor flat = tensor.contiguous();
      flats.push_back(flat);
      operations.push_back({kind, type_of(flat), op, root, 0, flat.data_ptr(), flat.data_ptr(),
                            static_cast<uint64_t>(flat.numel()), nullptr, nullptr, 0});
    }
    return start(type, tensors, operations, flats, copies_back(tensors, flats));
  }

  WorkPtr gather_into(OpType type, const Tensors& outputs, const Tensors& inputs) {
    std::vector<TroupeOperation> operations;
    Tensors flats, buffers;
    check_tensors(outputs);
    check_tensors(inputs);
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "as many outputs as inputs");
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor to = outputs[i].contiguous(), from = inputs[i].contiguous();
      TORCH_CHECK_VALUE(to.nbytes() == from.nbytes() * static_cast<size_t>(getSize()),
                        "the output of a gather has the size of all ranks' inputs");
      flats.push_back(to);
      buffers.push_back(from);
      operations.push_back(bytes(kTroupeAllGather, from.data_ptr(), to.data_ptr(), from.nbytes()));
    }
    buffers.insert(buffers.end(), flats.begin(), flats.end());
    return start(type, outputs, operations, buffers, copies_back(outputs, flats));
  }

  WorkPtr gather_apart(OpType type, TroupeKind kind, int root, const Tensors& outputs,
                       const Tensor& input, bool gets) {
    const Tensor from = input.contiguous();
    check_tensors(outputs);
    TORCH_CHECK_VALUE(!gets || outputs.size() == static_cast<size_t>(getSize()),
                      "one output for each of ", getSize(), " ranks");
    const Tensor all = gets ? at::empty({getSize(), input.numel()},
                                        input.options().memory_format(at::MemoryFormat::Contiguous))
                            : Tensor();
    for (const auto& output : outputs)
      TORCH_CHECK_VALUE(
          output.numel() == input.numel() && output.scalar_type() == input.scalar_type(),
          "tensors of one size and type");
    TroupeOperation operation =
        bytes(kind, from.data_ptr(), gets ? all.data_ptr() : nullptr, from.nbytes());
    operation.root = root;
    return start(type, outputs, {operation}, {from, all}, [outputs, all] {
      for (size_t rank = 0; rank < outputs.size(); ++rank)
        Tensor(outputs[rank]).copy_(all[static_cast<int64_t>(rank)].view(outputs[rank].sizes()));
    });
  }

  WorkPtr scatter_reduced(OpType type, const Tensors& outputs, const Tensors& inputs, int op) {
    std::vector<TroupeOperation> operations;
    Tensors flats, buffers;
    check_tensors(outputs);
    check_tensors(inputs);
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "as many outputs as inputs");
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor to = outputs[i].contiguous(), from = inputs[i].contiguous();
      TORCH_CHECK_VALUE(
          from.nbytes() == to.nbytes() * static_cast<size_t>(getSize()) &&
              from.scalar_type() == to.scalar_type(),
          "the input of a reduce-scatter has the size of all ranks' outputs, and their type");
      flats.push_back(to);
      buffers.push_back(from);
      operations.push_back({kTroupeReduceScatter, type_of(to), op, 0, 0, from.data_ptr(),
                            to.data_ptr(), static_cast<uint64_t>(to.numel()), nullptr, nullptr, 0});
    }
    buffers.insert(buffers.end(), flats.begin(), flats.end());
    return start(type, outputs, operations, buffers, copies_back(outputs, flats));
  }

  WorkPtr receive(OpType type, const Tensor& tensor, int from, int tag) {
    const Tensor flat = tensor.contiguous();
    TroupeOperation operation = bytes(kTroupeRecv, nullptr, flat.data_ptr(), flat.nbytes());
    operation.root = from;
    operation.tag = tag;
    return start(type, {tensor}, {operation}, {flat}, copies_back({tensor}, {flat}));
  }

  WorkPtr start(OpType type, const Tensors& results, std::vector<TroupeOperation> operations,
                Tensors buffers, std::function<void()> after) {
    auto running = std::make_unique<Running>();
    if (!c10d::isP2POp(type)) ++seq_;
    running->work = c10::make_intrusive<GroupWork>(getRank(), type, seq_, results);
    const WorkPtr work = running->work;
    buffers.insert(buffers.end(), results.begin(), results.end());
    running->buffers = std::move(buffers);
    running->after = std::move(after);
    running->left = static_cast<int>(operations.size()) + 1;  // and this function itself
    Running* const context = running.release();
    char error[4096];
    for (size_t i = 0; i < operations.size(); ++i) {
      operations[i].most_ms = static_cast<uint64_t>(timeout_ms_);
      if (api_->start(group_, &operations[i], ended, context, error, sizeof error) == 0) continue;
      for (; i < operations.size(); ++i) ended(context, error, -1);
    }
    ended(context, nullptr, -1);
    return work;
  }

  const TroupeGroupApi* const api_;
  TroupeGroup* const group_;
  std::atomic<uint64_t> seq_{0};
  std::atomic<int64_t> timeout_ms_;  // timeout of one operation
};

c10::intrusive_ptr<c10d::Backend> create(uintptr_t api, uintptr_t group, int rank, int size,
                                         int64_t timeout_ms) {
  const auto* const functions = reinterpret_cast<const TroupeGroupApi*>(api);
  TORCH_CHECK(functions->version >= TROUPE_GROUP_API_VERSION, "this library is of a later troupe");
  return c10::make_intrusive<GroupBackend>(functions, reinterpret_cast<TroupeGroup*>(group), rank,
                                           size, timeout_ms);
}

// How many collectives this rank has begun; nothing for a backend that is not of this library.
std::optional<uint64_t> begun(const c10::intrusive_ptr<c10d::Backend>& backend) {
  auto* const group = dynamic_cast<GroupBackend*>(backend.get());
  return group != nullptr ? std::optional(group->getSequenceNumberForGroup()) : std::nullopt;
}

}  // namespace
}  // namespace troupe_torch

PYBIND11_MODULE(TROUPE_TORCH_MODULE, m) {
  m.def("create", &troupe_torch::create, "The backend of a group whose handle is at `group`.");
  m.def("begun", &troupe_torch::begun, "How many collectives it has begun; None for another's.");
}
