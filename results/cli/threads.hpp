// --threads, -j: of run, sweep, validate and explain.
#pragma once

#include <boost/program_options.hpp>
#include <memory>
#include <optional>

#include "sim/base/parallel.hpp"

namespace mllmsim::cli {

void add_threads_option(boost::program_options::options_description& options);

// What was asked for, if anything was.
std::optional<std::size_t> threads_of(const boost::program_options::variables_map& values);

// Holds as long as it lives.
std::unique_ptr<ThreadLimit> limit_threads(const boost::program_options::variables_map& values);

}  // namespace mllmsim::cli
