#include "actors/bulk/remote_refs.h"

#include <algorithm>
#include <utility>

#include "actors/core/call/call_frame.h"
#include "actors/core/remote/value_refs.h"
#include "actors/slots/completions.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kWordsAtOnce = 1u << 20;  // bytes of words before those of further values

/// Runs when an object that was asked for has its value. It holds the object until then, also where
/// nobody asks any more: a slot does not end before those who wait for it have heard.
class ValueCame : public Completion {
 public:
  ValueCame(Answer* slot, store::ObjectId name, RemoteRefs::Notify notify)
      : slot_(slot), name_(name), notify_(std::move(notify)) {
    slot->AddReference();
  }
  void Run() override { notify_(name_); }

 private:
  const AnswerRef slot_;
  const store::ObjectId name_;
  const RemoteRefs::Notify notify_;
};

}  // namespace

void RemoteRefs::Begin(std::shared_ptr<RemoteSource> source, Notify notify) {
  source_ = std::move(source);
  notify_ = std::move(notify);
}

// ---- references of the other end's ------------------------------------------------------------

/// References that came together.
struct RemoteRefs::Taking {
  Handles handles;
  std::size_t missing = 0;
  Then then;
};

void RemoteRefs::Take(const std::vector<store::ObjectId>& names, Then then) {
  const auto taking = std::make_shared<Taking>();
  taking->then = std::move(then);
  taking->missing = 1;  // this function
  for (const store::ObjectId& name : names) {
    bool fresh = false;
    const store::ObjectId here = store_.TakeRemote(name, source_, &fresh);
    taking->handles.Add(here);
    if (fresh && !held_.Take(name, here.sequence)) {
      store_.FailRemote(
          here, ErrorCode::kTooLarge,
          "this process holds 1,048,576 refs of one process of another host, and no more");
      continue;
    }
    if (!fresh || held_.Knows(name)) continue;
    ++taking->missing;
    taking_.emplace(name, taking);
  }
  if (--taking->missing == 0) taking->then(std::move(taking->handles));
}

/// The other end has answered, or never will.
void RemoteRefs::Settle(const store::ObjectId& name) {
  const auto [first, last] = taking_.equal_range(name);
  std::vector<std::shared_ptr<Taking>> settled;
  for (auto each = first; each != last; ++each) settled.push_back(std::move(each->second));
  taking_.erase(first, last);
  for (const std::shared_ptr<Taking>& each : settled) {
    if (--each->missing == 0) each->then(std::move(each->handles));
  }
}

void RemoteRefs::Fail(const store::ObjectId& name, RemoteHeld::Local local, ErrorCode code,
                      const std::string& why) {
  store_.FailRemote({store_.self(), local}, code, why);
  Settle(name);
}

void RemoteRefs::GiveUpAsked(const std::string& why) {
  for (const RemoteHeld::Lost& lost : held_.GiveUpAsked())
    Fail(lost.name, lost.local, kObjectLost, why);
}

/// A value on its way: its bytes, and the references inside it.
struct RemoteRefs::Arriving {
  RemoteHeld::Value value;
  std::optional<StatusOr<store::Writing>> writing;
  std::optional<Handles> inside;
};

void RemoteRefs::Fetch(RemoteHeld::Value value) {
  const auto arriving = std::make_shared<Arriving>();
  arriving->value = std::move(value);
  const store::ObjectId name = arriving->value.name;
  const std::vector<store::ObjectId> inside = arriving->value.inside;
  Take(inside, [this, arriving](Handles handles) {
    arriving->inside = std::move(handles);
    Arrived(arriving);
  });
  pull_(name, [this, arriving](StatusOr<store::Writing> writing) {
    arriving->writing.emplace(std::move(writing));
    Arrived(arriving);
  });
}

void RemoteRefs::Arrived(const std::shared_ptr<Arriving>& arriving) {
  if (!arriving->writing || !arriving->inside) return;
  const RemoteHeld::Value& value = arriving->value;
  const store::ObjectId here{store_.self(), value.local};
  if (arriving->writing->ok()) {
    store_.FulfilRemote(here, value.flags, **arriving->writing, arriving->inside->ids());
  } else {
    const Status& why = arriving->writing->status();
    const bool full = ErrorCodeOf(why) == ErrorCode::kTooLarge;
    store_.FailRemote(here, full ? ErrorCode::kTooLarge : kObjectLost,
                      "its value could not be fetched from another host: " + MessageOf(why));
  }
  held_.LetGo(value.name, value.local);
}

// ---- references lent --------------------------------------------------------------------------

std::shared_ptr<const void> RemoteRefs::ValueOf(const store::ObjectId& name,
                                                std::string_view* bytes,
                                                store::ObjectId* object) const {
  const auto found = slots_.find(name);
  if (found == slots_.end() || !found->second.get()->done()) return nullptr;
  Answer* const slot = found->second.get();
  if ((slot->flags() & kFlagObjects) != 0) {
    const std::optional<store::ObjectId> id = ReadObjectId(slot->bytes());
    if (id) *object = *id;
    return nullptr;
  }
  if (const auto renamed = renamed_.find(name); renamed != renamed_.end()) {
    *bytes = *renamed->second;
    return renamed->second;
  }
  *bytes = slot->bytes();
  slot->AddReference();
  return std::make_shared<AnswerRef>(slot);
}

void RemoteRefs::Asked(const store::ObjectId& name) {
  if (!lent_.Want(name)) return;
  Answer* const slot = slots_.at(name).get();
  if (slot->done()) return Came(name);
  static_cast<void>(
      store_.completions().OnDone(slot, std::make_unique<ValueCame>(slot, name, notify_)));
}

void RemoteRefs::TellOf(const store::ObjectId& name, std::string& out) {
  const auto found = slots_.find(name);
  if (found == slots_.end() || !found->second.get()->done()) return;
  const Answer* const slot = found->second.get();
  const std::vector<store::ObjectId> inside = store_.RemoteInsideOf(name);
  std::uint64_t bytes = std::max<std::uint64_t>(slot->bytes().size(), 1);
  if ((slot->flags() & kFlagObjects) != 0) {
    const std::optional<store::ObjectId> id = ReadObjectId(slot->bytes());
    const StatusOr<ObjectView> view = id ? store_.View(*id) : MakeError(kObjectLost, "");
    bytes = view.ok() ? view->bytes().size() : 1;  // a reader learns that it is gone
  } else if (!inside.empty()) {
    std::string value(slot->bytes());
    RenameRefs(&value, [this](const store::ObjectId& id) { return store_.RemoteNameOf(id); });
    renamed_[name] = std::make_shared<const std::string>(std::move(value));
  }
  lent_.Tell(name, slot->flags(), bytes, inside, out);
}

// ---- words ------------------------------------------------------------------------------------

Status RemoteRefs::TakeWord(const BulkFrame& frame) {
  switch (frame.word) {
    case BulkWord::kHold:
    case BulkWord::kLetGo:
      if (asked_.size() >= RemoteHeld::kAskedMax)
        return MakeError(ErrorCode::kInvalid, "more words of references at once");
      if (frame.id.owner.IsNil())
        return MakeError(ErrorCode::kInvalid, "word of a reference of nobody");
      asked_.push_back(frame);
      return absl::OkStatus();
    case BulkWord::kHeld:
      if (held_.Held(frame)) Settle(frame.id);
      return absl::OkStatus();
    case BulkWord::kRefused: {
      const std::optional<RemoteHeld::Local> local = held_.Refused(frame);
      if (local)
        Fail(frame.id, *local, kObjectLost,
             "the object is lost: the process that the ref came from has let go of it");
      return absl::OkStatus();
    }
    case BulkWord::kLeft:
      held_.Dropped(frame);
      return absl::OkStatus();
    case BulkWord::kWant:
      Asked(frame.id);
      return absl::OkStatus();
    case BulkWord::kInside:
      return held_.Inside(frame);
    case BulkWord::kReady: {
      TROUPE_ASSIGN(std::optional<RemoteHeld::Value> value, held_.Ready(frame));
      if (value) Fetch(*std::move(value));
      return absl::OkStatus();
    }
    default:
      return MakeError(ErrorCode::kInternal, "a word that is none of references");
  }
}

void RemoteRefs::AnswerOne(const BulkFrame& ask, bool known, std::string& out) {
  if (ask.word == BulkWord::kLetGo) {
    if (lent_.TakeBack(ask.id)) {
      store_.NoteLentRemote(-1);
      store_.NoteLentOn(ask.id, false);
    }
    renamed_.erase(ask.id);
    slots_.erase(ask.id);
    return AppendBulkFrame(out, WordOf(BulkWord::kLeft, ask.id, ask.offset));
  }
  if (known && !lent_.Lends(ask.id)) {
    AnswerRef slot = lent_.full() ? AnswerRef() : store_.Borrow(ask.id);
    known = static_cast<bool>(slot);
    if (known) {
      slots_.emplace(ask.id, std::move(slot));
      lent_.Lend(ask.id);
      store_.NoteLentRemote(1);
      store_.NoteLentOn(ask.id, true);
    }
  }
  if (known) lent_.NoteOn(ask.id, ask.bytes != 0);
  AppendBulkFrame(out, WordOf(known ? BulkWord::kHeld : BulkWord::kRefused, ask.id, ask.offset));
}

void RemoteRefs::AppendWords(std::string& out) {
  held_.AppendWords(out);
  while (!ready_.empty() && out.size() < kWordsAtOnce) {
    const store::ObjectId name = ready_.front();
    ready_.pop_front();
    TellOf(name, out);
  }
}

void RemoteRefs::Unlinked() {
  held_.Unlinked();
  asked_.clear();
  doubt_.Clear();
}

void RemoteRefs::End(ErrorCode code, const std::string& why) {
  store_.NoteLentRemote(-static_cast<std::ptrdiff_t>(lent_.size()));
  for (const store::ObjectId& name : lent_.names()) {
    if (lent_.Outlives(name)) {
      static_cast<void>(slots_.at(name).Take());  // until this process ends
    } else {
      store_.NoteLentOn(name, false);
    }
  }
  lent_.Clear();
  renamed_.clear();
  slots_.clear();
  ready_.clear();
  for (const RemoteHeld::Lost& lost : held_.LoseAll()) Fail(lost.name, lost.local, code, why);
}

}  // namespace troupe::actors
