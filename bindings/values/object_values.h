// Large values: where the bytes of arrays go, and arrays over the bytes that came. Needs the GIL.
//
// A value's arrays (pickle protocol 5's out-of-band buffers, of kAlignedFromBytes and more) are
// written once, behind the rest of it (actors/core/call/value_form.h). In shared memory that is an
// object (actors/objects/object_store.h), whose large arrays are read where they lie; in a frame it
// travels as it is. Arrays that are small, or came in a frame, are aligned copies (value_memory.h).
#pragma once

#include <Python.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/caller/argument_codec.h"
#include "actors/core/call/byte_buffer.h"
#include "actors/objects/object_handles.h"
#include "actors/objects/object_store.h"

namespace troupe::bindings {

/// How a value's large parts leave, and what they take along.
struct Outgoing {
  enum class Way {
    kObjects,  // each large value becomes an object of this process, named in the frame
    kWriting,  // the value is written to `writing`, if it is large
  };
  /// `with_refs`: what takes the value can take references inside it.
  explicit Outgoing(Way w, std::size_t from, bool with_refs)
      : way(w), large_from(from), refs(with_refs) {}
  ~Outgoing();
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

  const Way way;
  std::size_t large_from;  // kNever: all stays in the frame
  const bool refs;
  bool names_remote = false;  // references go by the names they have between hosts
  bool names_inside = false;  // with an object go the names of what lies inside it
  actors::Handles held;  // objects that the frame names; for kWriting, those of the value
  std::optional<store::Writing> writing;
  /// Set: arguments that are to come, or failed, are left out and put there; else they are waited
  /// for.
  std::vector<actors::ArgumentToCome>* to_come = nullptr;
};

/// How many buffers one value can have beside its pickle; others stay in it.
inline constexpr std::uint32_t kBuffersMax = 1u << 20;

/// Buffers that were taken out of a pickle. Owns them.
class Buffers {
 public:
  struct One {
    Py_buffer view;
    bool writable_copy;  // the reader may write, to a copy of its own
  };
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();

  bool Add(PyObject* buffer, bool writable_copy);
  void Clear();
  const std::vector<One>& all() const { return all_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<One> all_;
  std::size_t bytes_ = 0;
};

/// The encoded size of a large value; its head comes in two pieces.
std::size_t LargeSize(std::size_t head_bytes, const Buffers& buffers);
/// Writes a large value to `at`, LargeSize bytes. Lets go of the GIL where that takes time.
void WriteLarge(char* at, std::string_view head, std::string_view more, const Buffers& buffers);
/// Stores a large value as an object of this process, or as outgoing->writing; `refs`: what lies
/// inside. False: an error is set.
bool StoreLarge(Outgoing* outgoing, actors::ByteBuffer& out, std::string_view head,
                std::string_view more, const Buffers& buffers, actors::Handles refs);

/// The value of an object. A new reference, or nullptr with an error set.
PyObject* ValueOfObject(const store::ObjectId& id);
/// Makes a large value of its bytes in a frame. A new reference; nullptr: an error is set, or none
/// is and the bytes are malformed.
PyObject* ValueOfLargeBytes(std::string_view bytes);
/// An object's bytes, copied into a frame if they are fewer than `below`. False: an error is set.
bool AppendObjectBytes(actors::ByteBuffer& out, const store::ObjectId& id, std::size_t below,
                       bool* appended);

/// The name of an object, and what lies inside it where that is wanted.
bool AppendNamed(actors::ByteBuffer& out, const store::ObjectId& id, const Outgoing& outgoing);

/// Returns the text of Ref.hex() for a reference to it.
std::string HexOf(const store::ObjectId& name);

/// The object store, or nullptr with an error set.
actors::ObjectStore* Objects();

}  // namespace troupe::bindings
