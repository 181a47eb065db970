#include "tests/sim/people/administrator.h"

#include <utility>

namespace troupe::sim {
namespace {

constexpr wire::CapKind kAllKinds[] = {wire::CapKind::kGpus, wire::CapKind::kCpus,
                                       wire::CapKind::kRunning, wire::CapKind::kQueued};

}  // namespace

void Administrator::Set(const std::string& owner, head::Caps caps) {
  wanted_[owner] = std::move(caps);
  Ask(owner);
}

void Administrator::Dial() {
  loop_.In(loop_.Between(Ms(1), plan_.dial_most), "administrator dials", [this] {
    auto link = std::make_shared<Link>(loop_, plan_);
    const SessionId session = head_.Accept(link, wire::Role::kClient, Id128(9, 1000), true);
    if (session.IsNil()) return Dial();
    link_ = link;
    // Weak: a link that kept itself alive through its own callbacks would outlive the run.
    const auto current = [this, weak = std::weak_ptr<Link>(link)] {
      return link_ && weak.lock() == link_;
    };
    EndPoint mine;
    mine.on_message = [this, current](wire::Message message) {
      if (current()) OnMessage(message);
    };
    mine.on_closed = [this, current] {
      if (!current()) return;
      link_.reset();
      Dial();
    };
    link->Open(head_.EndPointOf(session), std::move(mine));
    for (const auto& [owner, caps] : wanted_) Ask(owner);
  });
}

void Administrator::Ask(const std::string& owner) {
  std::erase_if(asked_, [&](const auto& each) { return each.second == owner; });
  if (!link_) return;
  wire::SetQuota quota;
  quota.user = owner;
  const head::Caps& caps = wanted_.at(owner);
  for (const auto& [kind, most] : caps) quota.caps.push_back({kind, most});
  for (const wire::CapKind kind : kAllKinds) {
    if (caps.count(kind) == 0) quota.lifted.push_back(kind);
  }
  asked_[++ids_] = owner;
  wire::Message message;
  message.id = ids_;
  message.body = std::move(quota);
  link_->ToHead(std::move(message));
}

void Administrator::OnMessage(const wire::Message& message) {
  if (const auto* error = wire::GetIf<wire::ErrorReply>(&message.body))
    checker_.Fail("the administrator was refused: " + error->text);
  const auto asked = asked_.find(message.reply_to);
  if (asked == asked_.end() || !wire::Holds<wire::UsageList>(message.body)) return;
  const auto& list = wire::Get<wire::UsageList>(message.body);
  head::Caps caps;
  for (const wire::Cap& cap : list.users.at(0).caps) caps[cap.kind] = cap.most;
  checker_.Expect(caps == wanted_.at(asked->second), "a quota is another than was set");
  wanted_.erase(asked->second);
  asked_.erase(asked);
}

}  // namespace troupe::sim
