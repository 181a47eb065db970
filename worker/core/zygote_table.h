// Choice of the zygote a process is forked from, and decisions on starting and ending zygotes.
// Pure.
//
// The node's own has loaded what every process needs. Others are keyed by what a process wants to
// have been loaded, and with which values of variables that are read at import (`read_at_import.h`)
// where these differ from the node's own. Modules that were named are worth their import at the
// first use. Values alone are executed at first: an interpreter of its own costs no more than a
// zygote, and most come once; from the second use on there is a zygote for them, and until it is
// ready they are executed still. At most `zygotes_max` beside the node's own: the least recently
// used of those that nobody waits for ends.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::worker {

struct ZygoteKey {
  std::vector<std::string> preimport;
  // Path on which they are found; empty without them, and where the interpreter's own packages have
  // them
  std::vector<std::string> import_path;
  std::string working_directory;
  // Further entries of their import path: requirements, packages
  std::string setup;
  std::vector<wire::EnvVar> variables;  // by name

  /// The node's own zygote has it all.
  bool IsDefault() const { return preimport.empty() && variables.empty(); }
  /// Writes the key as a text that no other key has.
  std::string Text() const;
  /// For people: "lightning and TORCH_LOGS". Without values, some of which are secrets.
  std::string Describe() const;
};

/// Returns the needs of `environment` beyond the node's own environment.
ZygoteKey ZygoteKeyOf(const std::vector<wire::EnvVar>& base_environment,
                      const wire::RuntimeEnvironment& environment);

class ZygoteTable {
 public:
  enum class How { kFork, kWait, kExecute };  // kWait: fork as soon as it is ready
  struct Choice {
    How how = How::kExecute;
    bool start = false;   // a zygote of this key, first
    std::string end;      // the key of one that ends before; "": none
    std::string problem;  // why there is none of this key; "": there is, or will be
  };

  explicit ZygoteTable(std::size_t zygotes_max = 4, std::size_t seen_max = 64)
      : zygotes_max_(zygotes_max), seen_max_(seen_max) {}

  /// For a process of a key that is not the default one. `waited_for`: keys that a process waits
  /// for just now.
  Choice Choose(const ZygoteKey& key, const std::vector<std::string>& waited_for);
  /// The one of this key is ready, or cannot be used for this `problem`: then its processes are
  /// executed until it is forgotten. `later`: it may be usable once a process of this key has been
  /// set up.
  void OnReady(const std::string& key, const std::string& problem, bool later = false);
  /// A process of this key has been set up: what it needs is on this host now.
  void OnSetUp(const std::string& key);

 private:
  enum class State { kSeen, kStarting, kReady, kUnusable };
  struct Entry {
    std::string key;
    State state = State::kSeen;
    std::string problem;
    bool later = false;
  };
  bool MakeRoom(const std::vector<std::string>& waited_for, std::string* ended);

  const std::size_t zygotes_max_;
  const std::size_t seen_max_;
  std::list<Entry> entries_;  // the latest used first
};

}  // namespace troupe::worker
