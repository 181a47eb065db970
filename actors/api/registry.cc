#include "actors/api/registry.h"

#include <cstdlib>
#include <iostream>
#include <map>

#include "runtime/base/mutex.h"

namespace troupe {
namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, ClassEntry> classes ABSL_GUARDED_BY(mutex);
};

Registry& Classes() {
  static auto* const registry = new Registry();  // outlives every static of a program
  return *registry;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

bool RegisterClass(ClassEntry entry) {
  Registry& registry = Classes();
  MutexLock lock(registry.mutex);
  const std::string name = entry.name;
  if (registry.classes.emplace(name, std::move(entry)).second) return true;
  std::cerr << "troupe: TROUPE_ACTOR registers the class " << name
            << " twice: once is enough, in one source file\n";
  std::abort();
}

std::string ClassNameIn(std::string_view signature) {
  return std::string(Trimmed(signature.substr(0, signature.find('('))));
}

std::vector<std::string> MethodNamesIn(std::string_view methods) {
  std::vector<std::string> names;
  while (!methods.empty()) {
    const std::string_view each = NextName(&methods);
    const std::size_t colons = each.rfind("::");
    names.emplace_back(Trimmed(colons == each.npos ? each : each.substr(colons + 2)));
  }
  return names;
}

void ThrowArity(const std::string& what, std::size_t given, std::size_t wanted) {
  throw InvalidError(what + " takes " + std::to_string(wanted) +
                     (wanted == 1 ? " argument, " : " arguments, ") + std::to_string(given) +
                     (given == 1 ? " was given" : " were given"));
}

void ThrowArgument(const std::string& what, std::size_t index, const InvalidError& error) {
  throw InvalidError("argument " + std::to_string(index + 1) + " of " + what + ": " + error.what());
}

void ExitActor() { throw api::ActorExit(); }

namespace api {

const ClassEntry* FindClass(const std::string& name) {
  Registry& registry = Classes();
  MutexLock lock(registry.mutex);
  const auto found = registry.classes.find(name);
  return found != registry.classes.end() ? &found->second : nullptr;
}

std::string KnownClasses() {
  Registry& registry = Classes();
  MutexLock lock(registry.mutex);
  std::string text;
  for (const auto& [name, entry] : registry.classes) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

const MethodEntry* FindMethod(const ClassEntry& entry, const std::string& name) {
  for (const MethodEntry& each : entry.methods) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::string KnownMethods(const ClassEntry& entry) {
  std::string text;
  for (const MethodEntry& each : entry.methods) text += (text.empty() ? "" : ", ") + each.name;
  return text.empty() ? "none" : text;
}

}  // namespace api
}  // namespace troupe
