#include "actors/api/executor.h"

#include <cxxabi.h>

#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>
#include <typeinfo>
#include <utility>
#include <vector>

#include "actors/api/core/pickle.h"
#include "actors/api/group_members.h"
#include "actors/api/value_codec.h"
#include "actors/bulk/bulk_session.h"
#include "actors/bulk/remote_arguments.h"
#include "actors/bulk/remote_results.h"
#include "actors/core/call/call_target.h"
#include "actors/core/call/value_form.h"
#include "actors/objects/object_store.h"

namespace troupe::api {
namespace {

using actors::ByteBuffer;
using actors::CallerConnection;
using actors::Frame;
using actors::Ran;

/// From when the call is come to: an owner on this host that does not answer is stopped.
constexpr std::chrono::seconds kFetchLimit{30};

void AppendText(std::string_view text, ByteBuffer& out) {
  const StatusOr<std::string> encoded = EncodeValue(Value::String(std::string(text)));
  if (encoded.ok()) out.Append(encoded->data(), encoded->size());
}

/// A runner of one caller's calls.
class CppRunner final : public actors::CallRunner {
 public:
  explicit CppRunner(CppExecutor& executor) : executor_(executor) {}

  StatusOr<Ran> Run(const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
                    std::uint16_t* flags) override;
  bool Prepare(const Frame& frame, CallerConnection& peer) override;

 private:
  /// Returns the method's name as it came. An error: the call breaks a rule of the protocol.
  StatusOr<std::string> NameOf(const Frame& frame);
  Status Fetch(const Frame& frame, CallerConnection& peer);
  StatusOr<Value> TakeArgument(std::string_view* values) const;
  StatusOr<Value::List> Arguments(const Frame& frame, CallerConnection& peer);
  /// Throws what the method does.
  Value Invoke(const std::string& name, const Value::List& arguments) const;
  void Answer(const Value& result, const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
              std::uint16_t* flags);
  Status AppendResult(const Value& result, const Frame& frame, CallerConnection& peer,
                      ByteBuffer& reply, std::uint16_t* flags);
  void Refuse(ErrorCode code, const std::string& text, ByteBuffer& reply, std::uint16_t* flags);
  void Raise(const std::string& pickle, const std::string& type, const std::string& text,
             const std::string& method, ByteBuffer& reply, std::uint16_t* flags);

  CppExecutor& executor_;
  std::vector<std::string> shapes_;
  actors::CallPrefix prefix_;
  // Arguments of the call after the last, from another host; and of the current one
  std::shared_ptr<actors::RemoteArguments> coming_;
  std::shared_ptr<actors::RemoteArguments> came_;
  actors::Handles received_;
};

StatusOr<std::string> CppRunner::NameOf(const Frame& frame) {
  TROUPE_TRY(actors::ParseCall(frame, executor_.limits(), &prefix_));
  const std::uint16_t id = prefix_.head.shape;
  if ((frame.head.flags & actors::kFlagNamed) == 0) {
    if (id >= shapes_.size() || shapes_[id].empty())
      return MakeError(ErrorCode::kInvalid,
                       "call shape " + std::to_string(id) + " before its names");
    return shapes_[id];
  }
  const std::string name(prefix_.method);
  if (id == actors::kNoShape) return name;
  if (id >= shapes_.size()) shapes_.resize(id + 1u);
  shapes_[id] = name;
  return name;
}

bool CppRunner::Prepare(const Frame& frame, CallerConnection& peer) {
  if (coming_ == nullptr) {
    actors::CallPrefix prefix;
    Named named;
    if (!actors::ParseCall(frame, executor_.limits(), &prefix).ok() ||
        !FindNamed(prefix.values, prefix.head.arg_count, &named) || named.values.empty())
      return true;
    const std::shared_ptr<actors::BulkSession> bulk_session = peer.Bulk();
    if (bulk_session == nullptr) return true;
    coming_ = actors::RemoteArguments::Begin(
        *bulk_session, named.values, {}, [weak = peer.weak_from_this()] {
          if (const std::shared_ptr<CallerConnection> waiting = weak.lock()) waiting->Unpark();
        });
  }
  return coming_->ready();
}

/// Makes what the call names readable here.
Status CppRunner::Fetch(const Frame& frame, CallerConnection& peer) {
  came_ = std::exchange(coming_, nullptr);
  received_.Clear();
  if ((frame.head.flags & actors::kFlagObjects) == 0) return {};
  Named named;
  if (!FindNamed(prefix_.values, prefix_.head.arg_count, &named))
    return MakeError(ErrorCode::kInternal, "arguments that name objects, and do not");
  if (named.values.empty() || (peer.away() && came_ != nullptr)) return {};
  actors::ObjectStore* const store = actors::ObjectStore::Current();
  if (store == nullptr || peer.away() || peer.process.IsNil())
    return MakeError(ErrorCode::kTooLarge,
                     "a large argument cannot be read: no descriptor is left here or in its "
                     "caller's process (raise `ulimit -n`)");
  store->Receive(peer.process, named.values);
  for (const store::ObjectId& id : named.values) received_.Add(id);
  if (!store->Await(named.values, {}, kFetchLimit))
    return MakeError(ErrorCode::kTimeout,
                     "an argument's owner did not answer within 30 s of the call: its process is "
                     "stopped");
  return {};
}

StatusOr<Value> CppRunner::TakeArgument(std::string_view* values) const {
  if (came_ != nullptr) {
    if (const std::optional<store::ObjectId> id = TakeObjectName(values)) {
      TROUPE_ASSIGN(const store::ObjectId copy, came_->CopyOf(*id));
      return ValueOfObject(copy);
    }
  }
  return DecodeValue(values);
}

StatusOr<Value::List> CppRunner::Arguments(const Frame& frame, CallerConnection& peer) {
  TROUPE_TRY(Fetch(frame, peer));
  std::string_view values = prefix_.values;
  Value::List arguments;
  for (int i = 0; i < prefix_.head.arg_count; ++i) {
    StatusOr<Value> value = TakeArgument(&values);
    if (!value.ok()) {
      return MakeError(ErrorCodeOf(value.status()),
                       "argument " + std::to_string(i + 1) + ": " + MessageOf(value.status()));
    }
    arguments.push_back(*std::move(value));
  }
  received_.Clear();
  return arguments;
}

Value CppRunner::Invoke(const std::string& name, const Value::List& arguments) const {
  if (name == "__ray_ready__") return Value::Bool(true);
  if (name == "__ray_terminate__") throw ActorExit();
  if (name == kGroupCard) return OpenGroupDoor(arguments);
  if (name == kGroupForm) return FormGroupHere(arguments);
  const ClassEntry& entry = executor_.entry();
  const MethodEntry* const method = FindMethod(entry, name);
  if (method == nullptr) {
    throw InvalidError("the C++ class " + entry.name + " has no method " + name +
                       "(); it registers: " + KnownMethods(entry));
  }
  return method->run(executor_.self(), arguments, entry.name + "." + name + "()");
}

StatusOr<Ran> CppRunner::Run(const Frame& frame, CallerConnection& peer, ByteBuffer& reply,
                             std::uint16_t* flags) {
  TROUPE_ASSIGN(const std::string name, NameOf(frame));
  const actors::CallTarget target =
      actors::ParseCallTarget(name).value_or(actors::CallTarget{name});
  const std::string method(target.method);
  const std::string what = executor_.entry().name + "." + method + "()";
  if (prefix_.head.keyword_count != 0 || target.returns != 1 || target.streams ||
      !target.group.empty()) {
    const InvalidError error(what +
                             " is C++: it takes arguments by their places, no keywords, and gives "
                             "one value, without num_returns and concurrency groups");
    Raise(PythonExceptionOf(error), "TypeError", error.what(), what, reply, flags);
    return Ran::kReplied;
  }
  StatusOr<Value::List> arguments = Arguments(frame, peer);
  if (!arguments.ok()) {
    if (ErrorCodeOf(arguments.status()) != ErrorCode::kInvalid) {
      Refuse(ErrorCodeOf(arguments.status()), what + ": " + MessageOf(arguments.status()), reply,
             flags);
    } else {
      const InvalidError error(what + ": " + MessageOf(arguments.status()));
      Raise(PythonExceptionOf(error), "TypeError", error.what(), what, reply, flags);
    }
    return Ran::kReplied;
  }
  try {
    Answer(Invoke(method, *arguments), frame, peer, reply, flags);
  } catch (const ActorExit&) {
    Answer(Value(), frame, peer, reply, flags);
    return Ran::kStop;
  } catch (const InvalidError& error) {
    Raise(PythonExceptionOf(error), "TypeError", error.what(), what, reply, flags);
  } catch (const std::exception& error) {
    Raise(PythonExceptionOf(error), TypeNameOf(error), error.what(), what, reply, flags);
  } catch (...) {
    const std::runtime_error error("it threw what is no std::exception");
    Raise(PythonExceptionOf(error), "an exception", error.what(), what, reply, flags);
  }
  return Ran::kReplied;
}

void CppRunner::Answer(const Value& result, const Frame& frame, CallerConnection& peer,
                       ByteBuffer& reply, std::uint16_t* flags) {
  const Status appended = AppendResult(result, frame, peer, reply, flags);
  if (!appended.ok())
    Refuse(ErrorCodeOf(appended), "its result: " + MessageOf(appended), reply, flags);
}

Status CppRunner::AppendResult(const Value& result, const Frame& frame, CallerConnection& peer,
                               ByteBuffer& reply, std::uint16_t* flags) {
  TROUPE_ASSIGN(const std::string encoded, EncodeValue(result));
  const std::size_t large_from =
      peer.away() ? actors::BulkSession::kFromBytes : actors::kLargeBytes;
  if (encoded.size() < large_from || peer.process.IsNil()) {
    if (actors::PaddedTo8(encoded.size()) > executor_.limits().frame_bytes_max)
      return MakeError(ErrorCode::kTooLarge,
                       "it takes " + std::to_string(encoded.size()) +
                           " bytes, and one answer may "
                           "take " +
                           std::to_string(executor_.limits().frame_bytes_max));
    reply.Append(encoded.data(), encoded.size());
    return {};
  }
  TROUPE_ASSIGN(const store::Writing writing, WriteLarge(encoded));
  actors::ObjectStore& store = *actors::ObjectStore::Current();
  std::string body;
  std::shared_ptr<actors::ResultHold> hold;
  if (peer.away()) {
    const std::shared_ptr<actors::BulkSession> bulk_session = peer.Bulk();
    if (bulk_session == nullptr) {
      store.pool().GiveUp(writing);
      return MakeError(ErrorCode::kTooLarge,
                       "a large result for another host needs a connection of its own, and this "
                       "process has no descriptor left (raise `ulimit -n`)");
    }
    hold = actors::OfferResult(store, &writing, {}, {}, bulk_session, &body);
  } else {
    TROUPE_ASSIGN(hold, store.LendResult(&writing, {}, {}, peer.process, &body));
  }
  reply.Append(body.data(), body.size());
  peer.Keep(frame.head.sequence, std::move(hold));
  *flags |= actors::kFlagObjects;
  return {};
}

void CppRunner::Refuse(ErrorCode code, const std::string& text, ByteBuffer& reply,
                       std::uint16_t* flags) {
  reply.Truncate(actors::kFrameHeadBytes);
  actors::AppendRuntimeError(reply, code, text);
  *flags |= actors::kFlagRuntimeError;
}

void CppRunner::Raise(const std::string& pickle, const std::string& type, const std::string& text,
                      const std::string& method, ByteBuffer& reply, std::uint16_t* flags) {
  reply.Truncate(actors::kFrameHeadBytes);
  const auto size = static_cast<std::uint32_t>(pickle.size());
  reply.AppendValue(static_cast<std::uint8_t>(actors::form::kPickle));
  reply.AppendValue(size);
  reply.Append(pickle.data(), pickle.size());
  AppendText(type, reply);
  AppendText(text, reply);
  AppendText("  in " + method + " of " + executor_.who(), reply);
  *flags |= actors::kFlagTaskError;
}

}  // namespace

std::unique_ptr<actors::CallRunner> CppExecutor::Open() {
  return std::make_unique<CppRunner>(*this);
}

std::string TypeNameOf(const std::exception& error) {
  int failed = 0;
  char* const name = abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &failed);
  std::string text = failed == 0 && name != nullptr ? name : typeid(error).name();
  std::free(name);
  return text;
}

std::string PythonExceptionOf(const std::exception& error) {
  std::string name = "RuntimeError";
  if (dynamic_cast<const InvalidError*>(&error) != nullptr) name = "TypeError";
  if (dynamic_cast<const std::invalid_argument*>(&error) != nullptr ||
      dynamic_cast<const std::domain_error*>(&error) != nullptr)
    name = "ValueError";
  if (dynamic_cast<const std::out_of_range*>(&error) != nullptr) name = "IndexError";
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) name = "MemoryError";
  std::string pickle;
  WriteCallPickle("builtins", name, Value::OfTuple({Value::String(error.what())}), &pickle)
      .IgnoreError();
  return pickle;
}

}  // namespace troupe::api
