// The classes that this program has registered. View: one process; filled before main() and by
// libraries that it loads.
#pragma once

#include <troupe/register.h>

#include <string>

namespace troupe::api {

/// nullptr: there is none of that name. What is returned stays as long as the process.
const ClassEntry* FindClass(const std::string& name);
/// "Adder, Counter", or "none".
std::string KnownClasses();
const MethodEntry* FindMethod(const ClassEntry& entry, const std::string& name);
std::string KnownMethods(const ClassEntry& entry);

/// The exception that ExitActor throws.
struct ActorExit {};

}  // namespace troupe::api
