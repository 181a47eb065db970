// Support of the generated codec: the conversions between plain values and Cap'n Proto's, with the
// limits that hold for every message. C++17; included by generated sources only.
#pragma once

#include <capnp/blob.h>
#include <kj/exception.h>

#include <cstdint>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/wire/limits.h"
#include "runtime/wire/schema/types.capnp.h"

namespace troupe::wire {

inline void ReadText(std::string& out, capnp::Text::Reader in) {
  out.assign(in.begin(), in.size());
}
inline void ReadData(std::string& out, capnp::Data::Reader in) {
  out.assign(reinterpret_cast<const char*>(in.begin()), in.size());
}
inline capnp::Text::Reader TextOf(const std::string& text) {
  return capnp::Text::Reader(text.c_str(), text.size());
}
inline capnp::Data::Reader DataOf(const std::string& bytes) {
  return capnp::Data::Reader(reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size());
}
inline void ReadId(Id128& out, schema::Id::Reader in) {
  out.hi = in.getHi();
  out.lo = in.getLo();
}
inline void WriteId(const Id128& in, schema::Id::Builder out) {
  out.setHi(in.hi);
  out.setLo(in.lo);
}
/// A value this version does not know (a newer peer's) is refused, not guessed.
template <class Wire, class Plain>
Plain ReadEnum(Wire value, Plain last) {
  KJ_REQUIRE(static_cast<std::uint16_t>(value) <= static_cast<std::uint16_t>(last),
             "a value of an enumeration that this version does not know");
  return static_cast<Plain>(value);
}
inline void CheckListSize(std::size_t size) {
  KJ_REQUIRE(size <= kListMax, "a list longer than the limit", size);
}
[[noreturn]] inline void RefuseKind(unsigned kind) {
  KJ_FAIL_REQUIRE("a message kind that this version does not know", kind);
}

}  // namespace troupe::wire
