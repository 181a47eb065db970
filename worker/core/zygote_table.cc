#include "worker/core/zygote_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "worker/core/read_at_import.h"

namespace troupe::worker {
namespace {

void Add(const std::string& part, std::string* text) {
  *text += std::to_string(part.size()) + ":" + part;
}

void AddAll(const std::vector<std::string>& parts, std::string* text) {
  *text += std::to_string(parts.size()) + " ";
  for (const std::string& part : parts) Add(part, text);
}

}  // namespace

std::string ZygoteKey::Text() const {
  std::string text;
  AddAll(preimport, &text);
  AddAll(import_path, &text);
  Add(working_directory, &text);
  Add(setup, &text);
  for (const wire::EnvVar& each : variables) {
    Add(each.name, &text);
    Add(each.value, &text);
  }
  return text;
}

std::string ZygoteKey::Describe() const {
  std::string text;
  for (const std::string& module : preimport) text += (text.empty() ? "" : ", ") + module;
  std::string names;
  for (const wire::EnvVar& each : variables) names += (names.empty() ? "" : ", ") + each.name;
  if (text.empty()) return names;
  if (!setup.empty()) text += " of its runtime_env";
  return names.empty() ? text : text + " and " + names;
}

ZygoteKey ZygoteKeyOf(const std::vector<wire::EnvVar>& base_environment,
                      const wire::RuntimeEnvironment& environment) {
  ZygoteKey key;
  key.preimport = environment.preimport;
  const bool preimports = !key.preimport.empty();
  if (preimports) {
    key.setup = environment.setup;
    if (!environment.preimport_installed) {
      key.import_path = environment.import_path;
      key.working_directory = environment.working_directory;
    }
  }
  std::map<std::string, std::string> variables;
  for (const wire::EnvVar& each : environment.env) {
    if (IsReadAtImport(each.name, preimports)) variables[each.name] = each.value;
  }
  for (const wire::EnvVar& each : base_environment) {
    const auto same = variables.find(each.name);
    if (same != variables.end() && same->second == each.value) variables.erase(same);
  }
  for (auto& [name, value] : variables) {
    wire::EnvVar each;
    each.name = name;
    each.value = value;
    key.variables.push_back(std::move(each));
  }
  return key;
}

ZygoteTable::Choice ZygoteTable::Choose(const ZygoteKey& key,
                                        const std::vector<std::string>& waited_for) {
  const std::string text = key.Text();
  const bool waits = !key.preimport.empty();
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& each) { return each.key == text; });
  const bool seen = found != entries_.end();
  if (seen) {
    entries_.splice(entries_.begin(), entries_, found);
  } else {
    entries_.push_front(Entry{text, State::kSeen, "", false});
  }
  Choice choice;
  Entry& entry = entries_.front();
  if (entry.state == State::kSeen && (waits || seen) && MakeRoom(waited_for, &choice.end)) {
    choice.start = true;
    entry.state = State::kStarting;
  }
  if (entry.state == State::kReady) choice.how = How::kFork;
  if (entry.state == State::kStarting && waits) choice.how = How::kWait;
  if (entry.state == State::kUnusable) choice.problem = entry.problem;
  if (entry.state == State::kSeen && waits)
    choice.problem = "processes wait for as many others as a node has";
  for (auto last = std::prev(entries_.end());
       entries_.size() > seen_max_ && last != entries_.begin();) {
    const auto before = std::prev(last);
    if (last->state == State::kSeen || last->state == State::kUnusable) entries_.erase(last);
    last = before;
  }
  return choice;
}

bool ZygoteTable::MakeRoom(const std::vector<std::string>& waited_for, std::string* ended) {
  const auto lives = [](const Entry& each) {
    return each.state == State::kStarting || each.state == State::kReady;
  };
  if (static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), lives)) <
      zygotes_max_)
    return true;
  const auto oldest = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& each) {
    return lives(each) &&
           std::find(waited_for.begin(), waited_for.end(), each.key) == waited_for.end();
  });
  if (oldest == entries_.rend()) return false;
  oldest->state = State::kSeen;
  *ended = oldest->key;
  return true;
}

void ZygoteTable::OnReady(const std::string& key, const std::string& problem, bool later) {
  for (Entry& each : entries_) {
    if (each.key != key || each.state == State::kSeen) continue;
    each.state = problem.empty() ? State::kReady : State::kUnusable;
    each.problem = problem;
    each.later = later;
  }
}

void ZygoteTable::OnSetUp(const std::string& key) {
  for (Entry& each : entries_) {
    if (each.key == key && each.later && each.state == State::kUnusable) each.state = State::kSeen;
  }
}

}  // namespace troupe::worker
