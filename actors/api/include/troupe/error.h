// Exceptions of this library. Each error says what happened, where, why and what to do; code()
// tells programs apart what type() tells people.
//
//   try { counter.Call<&Counter::Add>(1).Get(); }
//   catch (const troupe::ActorDiedError& error) { std::cerr << error.what(); }
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#define TROUPE_API __attribute__((visibility("default")))

namespace troupe {

/// Base of all errors of the runtime.
class TROUPE_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text) {}
  ~Error() override;
};

/// No cluster could be reached, or the session with it ended.
class TROUPE_API ConnectionError : public Error {
 public:
  using Error::Error;
  ~ConnectionError() override;
};
/// A cluster answered and refused: a wrong, expired or revoked token, or another cluster's.
class TROUPE_API JoinError : public Error {
 public:
  using Error::Error;
  ~JoinError() override;
};
/// A request that no state of this cluster can satisfy.
class TROUPE_API PlacementError : public Error {
 public:
  using Error::Error;
  ~PlacementError() override;
};
/// An unknown actor, group or name.
class TROUPE_API NotFoundError : public Error {
 public:
  using Error::Error;
  ~NotFoundError() override;
};
/// A name that is taken.
class TROUPE_API AlreadyExistsError : public Error {
 public:
  using Error::Error;
  ~AlreadyExistsError() override;
};
/// An argument that can never be right; a value that is not of the type that is asked for.
class TROUPE_API InvalidError : public Error {
 public:
  using Error::Error;
  ~InvalidError() override;
};
/// Over a limit; the text names what and the limit.
class TROUPE_API TooLargeError : public Error {
 public:
  using Error::Error;
  ~TooLargeError() override;
};
/// A deadline passed; the text says when it began and how long it was.
class TROUPE_API TimeoutError : public Error {
 public:
  using Error::Error;
  ~TimeoutError() override;
};
/// A call was cancelled.
class TROUPE_API CancelledError : public Error {
 public:
  using Error::Error;
  ~CancelledError() override;
};
/// The actor's process is gone and will not come back; the text names the cause.
class TROUPE_API ActorDiedError : public Error {
 public:
  using Error::Error;
  ~ActorDiedError() override;
};
/// The actor cannot be reached just now; a later call may succeed.
class TROUPE_API ActorUnavailableError : public Error {
 public:
  using Error::Error;
  ~ActorUnavailableError() override;
};
/// The call never left this process: safe to repeat.
class TROUPE_API NotSentError : public ActorUnavailableError {
 public:
  using ActorUnavailableError::ActorUnavailableError;
  ~NotSentError() override;
};
/// The call was sent and its answer will not come: it may have run.
class TROUPE_API MaybeExecutedError : public ActorUnavailableError {
 public:
  using ActorUnavailableError::ActorUnavailableError;
  ~MaybeExecutedError() override;
};
/// A launch failed, or was cancelled; the text names rank, host and cause.
class TROUPE_API LaunchError : public Error {
 public:
  using Error::Error;
  ~LaunchError() override;
};

/// The method threw. type(): its exception, "std::out_of_range" of a C++ actor, "KeyError" of a
/// Python one; traceback(): where, as far as that language knows.
class TROUPE_API TaskError : public Error {
 public:
  TaskError(const std::string& text, std::string type, std::string traceback)
      : Error(text), type_(std::move(type)), traceback_(std::move(traceback)) {}
  ~TaskError() override;
  const std::string& type() const { return type_; }
  const std::string& traceback() const { return traceback_; }

 private:
  std::string type_;
  std::string traceback_;
};

}  // namespace troupe
