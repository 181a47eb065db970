// Classes as actors: what a program registers by name, so that its own process, started on any
// node, can serve one.
//
//   class Counter {
//    public:
//     explicit Counter(int start) : total_(start) {}
//     int Add(int amount) { return total_ += amount; }
//    private:
//     int total_;
//   };
//   TROUPE_ACTOR(Counter(int), &Counter::Add);      // in one source file, at namespace scope
//
// The constructor is named by its parameters, the methods by their addresses; callers in Python
// know the class as it is written there ("Counter"), a method by its name ("Add"). Parameters and
// results are values (value.h); references and pointers to what lives in the actor are not.
#pragma once

#include <troupe/value.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// The name under which a method of a class is called.
struct MethodEntry {
  std::string name;
  Value (*run)(void* self, const Value::List& arguments, const std::string& what) = nullptr;
};
struct ClassEntry {
  std::string name;
  std::shared_ptr<void> (*make)(const Value::List& arguments, const std::string& what) = nullptr;
  std::vector<MethodEntry> methods;
};

/// Registers it; ends the process where the name is registered already.
TROUPE_API bool RegisterClass(ClassEntry entry);
/// The name of a class as TROUPE_ACTOR has it: what stands before the constructor's parameters.
TROUPE_API std::string ClassNameIn(std::string_view signature);
/// The names in "&Counter::Add, &Counter::Get": Add, Get.
TROUPE_API std::vector<std::string> MethodNamesIn(std::string_view methods);
/// Throws InvalidError: how many arguments `what` takes.
[[noreturn]] TROUPE_API void ThrowArity(const std::string& what, std::size_t given,
                                        std::size_t wanted);
[[noreturn]] TROUPE_API void ThrowArgument(const std::string& what, std::size_t index,
                                           const InvalidError& error);
/// Ends the actor once the method that calls this has answered: as one whose work is done, which is
/// not started again. Called within a method; throws through it.
[[noreturn]] TROUPE_API void ExitActor();

/// Argument `I` as a parameter of type T.
template <class T>
std::decay_t<T> TakeArgument(const Value::List& arguments, std::size_t index,
                             const std::string& what) {
  static_assert(!std::is_pointer_v<std::decay_t<T>>, "a pointer cannot travel: take a value");
  static_assert(!std::is_lvalue_reference_v<T> || std::is_const_v<std::remove_reference_t<T>>,
                "a parameter that the method changes cannot travel back: return the value");
  try {
    return FromValue<std::decay_t<T>>(arguments[index]);
  } catch (const InvalidError& error) {
    ThrowArgument(what, index, error);
  }
}

/// A pointer to a member function: its class, result and parameters.
template <class M>
struct MethodTraits;
template <class C, class R, class... A>
struct MethodTraits<R (C::*)(A...)> {
  using Class = C;
  using Result = R;
  using Arguments = std::tuple<A...>;
};
template <class C, class R, class... A>
struct MethodTraits<R (C::*)(A...) const> : MethodTraits<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct MethodTraits<R (C::*)(A...) noexcept> : MethodTraits<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct MethodTraits<R (C::*)(A...) const noexcept> : MethodTraits<R (C::*)(A...)> {};

/// The method's registered name; set before main().
template <auto Method>
std::string& MethodName() {
  static std::string name;
  return name;
}
template <class C>
std::string& ClassName() {
  static std::string name;
  return name;
}

template <auto Method>
struct MethodRunner {
  using Traits = MethodTraits<decltype(Method)>;

  static Value Run(void* self, const Value::List& arguments, const std::string& what) {
    constexpr std::size_t kCount = std::tuple_size_v<typename Traits::Arguments>;
    if (arguments.size() != kCount) ThrowArity(what, arguments.size(), kCount);
    return With(static_cast<typename Traits::Class*>(self), arguments, what,
                std::make_index_sequence<kCount>());
  }

 private:
  template <std::size_t... I>
  static Value With(typename Traits::Class* self, const Value::List& arguments,
                    const std::string& what, std::index_sequence<I...>) {
    // In braces: the first wrong argument is the one that is told of.
    std::tuple<std::decay_t<std::tuple_element_t<I, typename Traits::Arguments>>...> taken{
        TakeArgument<std::tuple_element_t<I, typename Traits::Arguments>>(arguments, I, what)...};
    if constexpr (std::is_void_v<typename Traits::Result>) {
      (self->*Method)(std::move(std::get<I>(taken))...);
      return {};
    } else {
      return ToValue<std::decay_t<typename Traits::Result>>(
          (self->*Method)(std::move(std::get<I>(taken))...));
    }
  }
};

template <class Signature>
struct ConstructorTraits;
template <class C, class... A>
struct ConstructorTraits<C(A...)> {
  using Class = C;
  using Arguments = std::tuple<A...>;

  static std::shared_ptr<void> Make(const Value::List& arguments, const std::string& what) {
    if (arguments.size() != sizeof...(A)) ThrowArity(what, arguments.size(), sizeof...(A));
    return With(arguments, what, std::index_sequence_for<A...>());
  }

 private:
  template <std::size_t... I>
  static std::shared_ptr<void> With(const Value::List& arguments, const std::string& what,
                                    std::index_sequence<I...>) {
    std::tuple<std::decay_t<A>...> taken{TakeArgument<A>(arguments, I, what)...};
    return std::make_shared<C>(std::move(std::get<I>(taken))...);
  }
};

template <class Signature, auto... Methods>
bool RegisterActor(const char* signature, const char* methods) {
  using Traits = ConstructorTraits<Signature>;
  ClassEntry entry;
  entry.name = ClassNameIn(signature);
  entry.make = &Traits::Make;
  const std::vector<std::string> names = MethodNamesIn(methods);
  std::size_t at = 0;
  static_cast<void>(at);
  ((entry.methods.push_back({names[at], &MethodRunner<Methods>::Run}),
    MethodName<Methods>() = names[at++]),
   ...);
  ClassName<typename Traits::Class>() = entry.name;
  return RegisterClass(std::move(entry));
}

}  // namespace troupe

#define TROUPE_JOIN_INNER(a, b) a##b
#define TROUPE_JOIN(a, b) TROUPE_JOIN_INNER(a, b)
/// See the top of this file. Signature: the class and the parameters of its constructor; then the
/// addresses of its methods.
#define TROUPE_ACTOR(Signature, ...)                                           \
  [[maybe_unused]] static const bool TROUPE_JOIN(troupe_actor_, __COUNTER__) = \
      ::troupe::RegisterActor<Signature __VA_OPT__(, ) __VA_ARGS__>(#Signature, #__VA_ARGS__)
