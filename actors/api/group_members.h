// The groups that this process is a member of, by name. View: one process; thread-safe.
#pragma once

#include <troupe/value.h>

#include <string>

namespace troupe::api {

/// Methods of every C++ actor, for troupe::train::FormGroup. The first opens a door and gives its
/// card, the second forms the group: (name, rank, secret, cards, seconds). Throw what is wrong.
inline constexpr char kGroupCard[] = "__troupe_group_card__";
inline constexpr char kGroupForm[] = "__troupe_group_form__";

Value OpenGroupDoor(const Value::List& arguments);
Value FormGroupHere(const Value::List& arguments);

}  // namespace troupe::api
