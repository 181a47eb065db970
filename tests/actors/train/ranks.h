// Real processes as the ranks of a test: forked before anything of CUDA is loaded, each with its
// own environment, and a board in shared memory by which they wait for each other and for the test.
//
//   const auto ends = RunRanks(4, {}, [](Rank& rank) {
//     rank.Require(rank.index() < 4, "what should be");
//     rank.Pass("formed", 4);                          // a barrier with a name
//   });
//   ExpectSuccess(ends);
//
// Every wait has a deadline of a minute, after which the process ends with what it waited for.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/train/nccl_types.h"
#include "runtime/base/status.h"

namespace troupe::train {

inline constexpr int kSecondsMax = 60;
inline constexpr int kMarksMax = 16;

/// Shared by the test and its ranks.
struct Board {
  std::atomic<std::uint32_t> change;
  struct Mark {
    std::atomic<std::uint64_t> key;  // hash of its name
    std::atomic<int> count;
    std::atomic<std::int64_t> last_ns;  // the monotonic clock's time when it was passed last
  } marks[kMarksMax];
  NcclUniqueId ids[8];
  double values[32];

  /// The mark of this name, made at its first use.
  Mark& At(const std::string& name);
  /// Adds one to the mark, and wakes who waits.
  void Add(const std::string& name);
  /// Blocks until the mark has come to `count`; false after kSecondsMax.
  bool Await(const std::string& name, int count);
};

class Rank {
 public:
  Rank(int index, int size, Board& board) : index_(index), size_(size), board_(board) {}
  int index() const { return index_; }
  int size() const { return size_; }
  Board& board() { return board_; }

  /// Ends this process with the text where `holds` is false.
  void Require(bool holds, const std::string& text) const;
  template <class T>
  T Take(absl::StatusOr<T> value) const {
    Require(value.ok(), std::string(value.status().message()));
    return std::move(value).value();
  }
  /// Reaches a mark and waits until `count` of the ranks have.
  void Pass(const std::string& mark, int count) const;
  void Await(const std::string& mark, int count) const;

 private:
  int index_, size_;
  Board& board_;
};

struct RankEnd {
  int index;
  int exit_code;    // -1: by a signal, or not at all
  int signal;       // 0: none; SIGKILL also where the test's time was over
  bool overdue;  // had not ended after the test's time
  std::string err;  // the process's stderr
};

using Environment = std::map<std::string, std::string>;
/// Environments of ranks, by index.
using Environments = std::map<int, Environment>;
/// The test's code meanwhile, with the processes' ids; those may be signalled.
using Meanwhile = std::function<void(Board&, const std::vector<pid_t>&)>;

/// Runs the ranks to their ends, two minutes at most; whoever lives then is killed and overdue.
std::vector<RankEnd> RunRanks(int size, const Environments& environments,
                              const std::function<void(Rank&)>& body,
                              const Meanwhile& meanwhile = {});

/// All of them exited with 0, with what they said where they did not.
void ExpectSuccess(const std::vector<RankEnd>& ends);
/// This one was ended by abort(), with these words on stderr.
void ExpectViolation(const RankEnd& end, const std::string& words);

}  // namespace troupe::train
