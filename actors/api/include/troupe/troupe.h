// All of Troupe for C++. How it fits together, with examples: docs/guides/cpp.md.
#pragma once

#include <troupe/actor.h>
#include <troupe/cluster.h>
#include <troupe/error.h>
#include <troupe/launch.h>
#include <troupe/placement_group.h>
#include <troupe/ref.h>
#include <troupe/register.h>
#include <troupe/train.h>
#include <troupe/value.h>
