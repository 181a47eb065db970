#include "worker/zygotes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/base/log.h"

namespace troupe::worker {
namespace {

constexpr char kParkedVariable[] = "TROUPE_PARKED_PROCESSES";
// Number of processes that keyed zygotes keep forked ahead: there may be four of them, with large
// libraries
constexpr char kParkedOfKeyed[] = "2";
constexpr char kNone[] = "0";  // for the light one, which lives for seconds

constexpr char kOneLaunch[] = "TROUPE_ONE_LAUNCH=1";  // the launch's ranks wait for the node's own

constexpr std::string_view kFresh = "in fresh interpreters";
constexpr char kBeingMade[] = "its zygote is being made";

std::string Seconds(std::uint64_t ms) {
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
}

bool Sets(const std::string& entry, const std::string& name) {
  return entry.rfind(name + "=", 0) == 0;
}

/// So many are kept forked ahead, unless the node's own environment says how many.
void Park(const char* count, std::vector<std::string>* environment) {
  const bool said =
      std::any_of(environment->begin(), environment->end(),
                  [](const std::string& entry) { return Sets(entry, kParkedVariable); });
  if (!said) environment->push_back(std::string(kParkedVariable) + "=" + count);
}

}  // namespace

Zygotes::Zygotes(async::Executor executor, const Clock& clock, ZygoteOptions options, Events events)
    : executor_(executor),
      clock_(clock),
      options_(std::move(options)),
      events_(std::move(events)),
      own_(std::make_unique<Zygote>(executor, clock, options_, OwnEvents())) {}

void Zygotes::Start() {
  own_->Start();
  const std::vector<std::string>& environment = options_.environment;
  if (std::find(environment.begin(), environment.end(), kOneLaunch) != environment.end()) return;
  ZygoteOptions light = options_;
  light.light = true;
  Park(kNone, &light.environment);
  first_ = std::make_unique<Zygote>(executor_, clock_, std::move(light), FirstEvents());
  first_->Start();
}

Zygote::Events Zygotes::FirstEvents() {
  Zygote::Events events;
  events.ready = [](const wire::ZygoteReady&) {};
  events.forked = [this](ProcessId id, int pid, UniqueFd pidfd) {
    events_.forked(id, pid, std::move(pidfd), "");
    RetireFirst();
  };
  events.refused = [this](ProcessId id, const std::string& error) {
    events_.refused(id, error);
    RetireFirst();
  };
  events.unanswered = [this](ProcessId id) {
    events_.unanswered(id);
    RetireFirst();
  };
  events.given_up = [this](const std::string&) { events_.given_up(first_->WithdrawAll()); };
  return events;
}

void Zygotes::RetireFirst() {
  if (!first_ || !first_->idle() || !(own_->is_ready() || own_->unusable())) return;
  first_->Stop();
  // A zygote that has just ended stays, for it may be the caller of this: it is never ready again.
  if (const int pid = first_->pid(); pid != 0) ending_.emplace(pid, std::move(first_));
}

Zygote::Events Zygotes::SharedEvents() {
  Zygote::Events events;
  events.refused = events_.refused;
  events.unanswered = events_.unanswered;
  return events;
}

Zygote::Events Zygotes::OwnEvents() {
  Zygote::Events events = SharedEvents();
  events.forked = [this](ProcessId id, int pid, UniqueFd pidfd) {
    events_.forked(id, pid, std::move(pidfd), "");
  };
  events.ready = [this](const wire::ZygoteReady& ready) {
    events_.ready(ready.usable, ready.python_version);
    if (ready.usable) StartAhead();
    RetireFirst();
  };
  events.given_up = [this](const std::string&) {
    Log(LogLevel::kWarning, "no zygote: every process is executed instead", {});
    events_.given_up(own_->WithdrawAll());
    StartAhead();
    RetireFirst();
  };
  return events;
}

Zygote::Events Zygotes::KeyedEvents(const std::string& key) {
  Zygote::Events events = SharedEvents();
  events.forked = [this, key](ProcessId id, int pid, UniqueFd pidfd) {
    OnKeyedForked(key, id, pid, std::move(pidfd));
  };
  events.ready = [this, key](const wire::ZygoteReady& ready) { OnKeyedReady(key, ready); };
  events.given_up = [this, key](const std::string& why) { OnKeyedGivenUp(key, why); };
  return events;
}

void Zygotes::OnKeyedReady(const std::string& key, const wire::ZygoteReady& ready) {
  Keyed& keyed = keyed_.at(key);
  keyed.later = ready.later;
  if (!ready.usable) return;  // given up next
  table_.OnReady(key, "");
  keyed.imports = Seconds(ready.import_ms) + " of imports";
  SayAhead(key, "ready, " + keyed.imports);
}

void Zygotes::OnKeyedForked(const std::string& key, ProcessId id, int pid, UniqueFd pidfd) {
  std::string from;
  if (const auto found = keyed_.find(key); found != keyed_.end()) {
    Keyed& keyed = found->second;
    const bool made_for_it = keyed.waited.erase(id) > 0;
    from = made_for_it ? "forked from a new zygote with " + keyed.what + ", " + keyed.imports
                       : "forked from a zygote with " + keyed.what;
  }
  events_.forked(id, pid, std::move(pidfd), from);
}

void Zygotes::OnKeyedGivenUp(const std::string& key, const std::string& why) {
  Keyed& keyed = keyed_.at(key);
  Log(LogLevel::kWarning, "no zygote of this kind: its processes are executed instead",
      {{"of", keyed.what}, {"reason", why}});
  table_.OnReady(key, why.empty() ? "it cannot be used" : why, keyed.later);
  keyed.waited.clear();
  SayAhead(key, "no zygote with it: " + why);
  events_.given_up(keyed.zygote->WithdrawAll());
}

void Zygotes::StartAhead() {
  if (!ahead_.empty() || options_.ahead.empty()) return;
  for (const std::vector<std::string>& modules : options_.ahead) {
    Ahead each;
    each.key.preimport = modules;
    ahead_.push_back(std::move(each));
  }
  for (const Ahead& each : ahead_) {
    const std::string key = each.key.Text();
    if (const auto found = keyed_.find(key); found != keyed_.end()) {  // somebody was quicker
      SayAhead(key, found->second.imports.empty() ? kBeingMade : "ready, " + found->second.imports);
      continue;
    }
    MakeChoice(each.key, {});
  }
}

void Zygotes::SayAhead(const std::string& key, const std::string& how) {
  bool any = false;
  std::vector<std::string> texts;
  for (Ahead& each : ahead_) {
    if (each.key.Text() == key) {
      each.text = each.key.Describe() + ": " + how;
      any = true;
    }
    texts.push_back(each.text);
  }
  if (any) events_.ahead(texts);
}

Zygotes::Choice Zygotes::Choose(const StartProcess& plan) {
  const bool keyed = !plan.zygote.IsDefault();
  // Requirements in a process of their own: one that has loaded nothing yet, or a zygote that has
  // loaded all from them.
  if (plan.fresh_interpreter && plan.zygote.setup.empty()) return {nullptr, std::string(kFresh)};
  if (keyed) return ChooseKeyed(plan);
  if (own_->unusable()) return {nullptr, std::string(kFresh) + ": the node has no zygote"};
  if (plan.may_exec && !own_->is_ready()) {
    if (first_ && first_->is_ready()) return {first_.get(), ""};
    return {nullptr, std::string(kFresh) + ": the node's zygote is not ready"};
  }
  return {own_.get(), ""};
}

ZygoteTable::Choice Zygotes::MakeChoice(const ZygoteKey& key,
                                        const std::vector<std::string>& waited_for) {
  ZygoteTable::Choice choice = table_.Choose(key, waited_for);
  if (!choice.end.empty()) EndKeyed(choice.end);
  if (choice.start) StartKeyed(key);
  return choice;
}

Zygotes::Choice Zygotes::ChooseKeyed(const StartProcess& plan) {
  std::vector<std::string> waited_for;
  for (const auto& [key, keyed] : keyed_) {
    if (!keyed.zygote->idle()) waited_for.push_back(key);
  }
  const ZygoteTable::Choice choice = MakeChoice(plan.zygote, waited_for);
  const auto found = keyed_.find(plan.zygote.Text());
  if (choice.how != ZygoteTable::How::kExecute && found != keyed_.end()) {
    if (choice.how == ZygoteTable::How::kWait) found->second.waited.insert(plan.request.process);
    return {found->second.zygote.get(), ""};
  }
  const std::string what = plan.zygote.Describe();
  return {nullptr, std::string(kFresh) + (choice.problem.empty() ? " for " + what
                                                                 : ": no zygote with " + what +
                                                                       ": " + choice.problem)};
}

void Zygotes::StartKeyed(const ZygoteKey& key) {
  ZygoteOptions options = options_;
  for (const wire::EnvVar& each : key.variables) {
    const auto same = [&](const std::string& entry) { return Sets(entry, each.name); };
    options.environment.erase(
        std::remove_if(options.environment.begin(), options.environment.end(), same),
        options.environment.end());
    options.environment.push_back(each.name + "=" + each.value);
  }
  Park(kParkedOfKeyed, &options.environment);
  options.preimport = key.preimport;
  options.import_path = key.import_path;
  options.working_directory = key.working_directory;
  options.setup = key.setup;
  const std::string text = key.Text();
  EndKeyed(text);
  Log(LogLevel::kInfo, "a zygote of its own is started", {{"of", key.Describe()}});
  SayAhead(text, kBeingMade);
  Keyed& keyed = keyed_[text];
  keyed.what = key.Describe();
  keyed.zygote = std::make_unique<Zygote>(executor_, clock_, std::move(options), KeyedEvents(text));
  keyed.zygote->Start();
}

void Zygotes::EndKeyed(const std::string& key) {
  auto ended = keyed_.extract(key);
  if (ended.empty()) return;
  std::unique_ptr<Zygote> zygote = std::move(ended.mapped().zygote);
  const bool used = !zygote->unusable();
  zygote->Stop();
  const int pid = zygote->pid();
  if (pid != 0) ending_.emplace(pid, std::move(zygote));
  if (used)
    SayAhead(key, "its zygote has ended, for others were used since; the next use makes it anew");
}

std::vector<Zygote*> Zygotes::All() const {
  std::vector<Zygote*> all = {own_.get()};
  if (first_) all.push_back(first_.get());
  for (const auto& [key, keyed] : keyed_) all.push_back(keyed.zygote.get());
  for (const auto& [pid, zygote] : ending_) all.push_back(zygote.get());
  return all;
}

bool Zygotes::Withdraw(ProcessId process) {
  for (auto& [key, keyed] : keyed_) keyed.waited.erase(process);
  const std::vector<Zygote*> all = All();
  return std::any_of(all.begin(), all.end(),
                     [&](Zygote* each) { return each->Withdraw(process).has_value(); });
}

void Zygotes::Drain() {
  for (Zygote* zygote : All()) zygote->Drain();
}

bool Zygotes::Has(int pid) const {
  const std::vector<Zygote*> all = All();
  return std::any_of(all.begin(), all.end(), [pid](const Zygote* each) {
    return each->pid() == pid || each->IsParked(pid);
  });
}

bool Zygotes::OnEnded(int pid, const std::function<std::string()>& how) {
  const auto ended = ending_.find(pid);
  if (ended != ending_.end()) {
    ending_.erase(ended);
    return true;
  }
  for (Zygote* zygote : All()) {
    if (zygote->pid() == pid) {
      zygote->OnEnded(how());
      return true;
    }
    if (!zygote->OnParkedEnded(pid)) continue;
    static_cast<void>(how());
    return true;
  }
  return false;
}

void Zygotes::Tidy() {
  std::vector<std::string> unusable;
  for (const auto& [key, keyed] : keyed_) {
    if (keyed.zygote->unusable()) unusable.push_back(key);
  }
  for (const std::string& key : unusable) EndKeyed(key);
}

void Zygotes::Stop() {
  for (Zygote* zygote : All()) zygote->Stop();
}

}  // namespace troupe::worker
