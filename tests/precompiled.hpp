// Headers of all tests, compiled once; see sim/base/precompiled.hpp.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/base/precompiled.hpp"
