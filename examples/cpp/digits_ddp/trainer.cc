// Torch's own data parallelism in C++: c10d::Reducer puts gradients into buckets and averages each
// as soon as it is full, here by a backend over a troupe::train::Group.
#include "trainer.h"

#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

TROUPE_ACTOR(Trainer(const std::string&, std::int64_t), &Trainer::Join, &Trainer::Epoch,
             &Trainer::Accuracy, &Trainer::Pid);

namespace {

constexpr std::int64_t kPixels = 64;
constexpr std::int64_t kBatch = 32;
constexpr std::size_t kFirstBucketBytes = 1 << 20;
constexpr std::size_t kBucketBytes = 25 << 20;

/// An operation that was done when it was started.
class DoneWork : public c10d::Work {
 public:
  explicit DoneWork(std::vector<at::Tensor> tensors)
      : future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {
    finish();
    future_->markCompleted(c10::IValue(std::move(tensors)));
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// The parts of a process group that the reducer needs: sums of float tensors. A member that dies
/// makes it throw, and backward() with it.
class GroupBackend : public c10d::Backend {
 public:
  explicit GroupBackend(troupe::train::Group group)
      : Backend(group.rank(), group.size()), group_(std::move(group)) {}
  const std::string getBackendName() const override { return "troupe"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    for (at::Tensor& each : tensors) {
      group_.AllReduce(
          std::span<float>(each.data_ptr<float>(), static_cast<std::size_t>(each.numel())));
    }
    return c10::make_intrusive<DoneWork>(tensors);
  }

 private:
  troupe::train::Group group_;
};

struct Digits {
  torch::Tensor pixels, labels;

  Digits Slice(std::int64_t from, std::int64_t to) const {
    return {pixels.slice(0, from, to), labels.slice(0, from, to)};
  }
};

/// All digits, shuffled alike on every rank.
Digits Read(const std::string& path) {
  std::ifstream file(path);
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::string line; std::getline(file, line);) {
    std::stringstream numbers(line);
    std::string number;
    for (int i = 0; i < kPixels && std::getline(numbers, number, ','); ++i)
      pixels.push_back(std::stof(number) / 16);
    if (std::getline(numbers, number, ',')) labels.push_back(std::stol(number));
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  if (count == 0 || static_cast<std::int64_t>(pixels.size()) != count * kPixels)
    throw std::invalid_argument(path + " holds no lines of 64 pixels and a digit");
  torch::manual_seed(0);
  const torch::Tensor order = torch::randperm(count);
  return {torch::tensor(pixels).view({count, kPixels}).index_select(0, order),
          torch::tensor(labels).index_select(0, order)};
}

}  // namespace

struct Trainer::State {
  Digits train, test;
  torch::nn::Sequential net{nullptr};
  std::shared_ptr<torch::optim::AdamW> optimizer;
  std::shared_ptr<c10d::Reducer> reducer;
  std::int64_t rank = 0, size = 1;
};

Trainer::Trainer(const std::string& data, std::int64_t seed) : state_(std::make_unique<State>()) {
  at::set_num_threads(1);
  const Digits all = Read(data);
  const std::int64_t count = all.labels.size(0), held_out = count / 4;
  state_->train = all.Slice(held_out, count);
  state_->test = all.Slice(0, held_out);
  torch::manual_seed(seed);
  state_->net = torch::nn::Sequential(torch::nn::Linear(kPixels, 128), torch::nn::ReLU(),
                                      torch::nn::Linear(128, 10));
}

Trainer::~Trainer() = default;

std::int64_t Trainer::Join(const std::string& checkpoint) {
  State& state = *state_;
  std::int64_t epochs = 0;
  state.optimizer = std::make_shared<torch::optim::AdamW>(state.net->parameters(),
                                                          torch::optim::AdamWOptions(5e-3));
  if (std::filesystem::exists(checkpoint)) {
    torch::serialize::InputArchive archive;
    archive.load_from(checkpoint);
    state.net->load(archive);
    torch::Tensor seen;
    archive.read("epochs", seen);
    epochs = seen.item<std::int64_t>();
  }
  const troupe::train::Group group = troupe::train::GetGroup("digits");
  state.rank = group.rank();
  state.size = group.size();
  auto processes = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(),
                                                           group.rank(), group.size());
  processes->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                        c10::make_intrusive<GroupBackend>(group));
  processes->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  const std::vector<torch::Tensor> parameters = state.net->parameters();
  const std::vector<bool> dense(parameters.size(), false);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, {kFirstBucketBytes, kBucketBytes}, dense, {}));
  std::reverse(buckets.begin(), buckets.end());  // gradients come last layer first
  state.reducer = std::make_shared<c10d::Reducer>(
      parameters, buckets, processes, dense, kBucketBytes, /*find_unused_parameters=*/false,
      /*gradient_as_bucket_view=*/false, std::unordered_map<std::size_t, std::string>{},
      kFirstBucketBytes, /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      std::vector<std::int64_t>{});
  return epochs;
}

double Trainer::Epoch(std::int64_t epoch, const std::string& checkpoint) {
  State& state = *state_;
  const std::int64_t own = state.train.labels.size(0) / state.size;
  torch::manual_seed(static_cast<std::uint64_t>(100 + epoch));  // all ranks deal alike
  const torch::Tensor order = torch::randperm(state.train.labels.size(0))
                                  .slice(0, state.rank * own, (state.rank + 1) * own);
  double loss_sum = 0;
  std::int64_t batches = 0;
  for (std::int64_t at = 0; at < own; at += kBatch, ++batches) {
    const torch::Tensor chosen = order.slice(0, at, std::min(at + kBatch, own));
    state.optimizer->zero_grad();
    state.reducer->prepare_for_forward();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(
        state.net->forward(state.train.pixels.index_select(0, chosen)),
        state.train.labels.index_select(0, chosen));
    state.reducer->prepare_for_backward({loss});
    loss.backward();
    state.optimizer->step();
    loss_sum += loss.item<double>();
  }
  if (state.rank == 0) {  // whole or not there
    torch::serialize::OutputArchive archive;
    state.net->save(archive);
    archive.write("epochs", torch::tensor(epoch));
    archive.save_to(checkpoint + ".new");
    std::filesystem::rename(checkpoint + ".new", checkpoint);
  }
  return loss_sum / static_cast<double>(batches);
}

double Trainer::Accuracy() {
  State& state = *state_;
  const torch::NoGradGuard no_gradients;
  const std::int64_t own = state.test.labels.size(0) / state.size;
  const Digits mine = state.test.Slice(state.rank * own, (state.rank + 1) * own);
  const torch::Tensor right = (state.net->forward(mine.pixels).argmax(1) == mine.labels).sum();
  std::vector<double> sums{right.item<double>(), static_cast<double>(own)};
  troupe::train::GetGroup("digits").AllReduce(std::span<double>(sums));
  return sums[0] / sums[1];
}

std::int64_t Trainer::Pid() const { return ::getpid(); }
