// --threads, -j: of run, sweep and validate.
#pragma once

#include <tbb/global_control.h>

#include <boost/program_options.hpp>
#include <memory>
#include <optional>

namespace mllmsim::cli {

void add_threads_option(boost::program_options::options_description& options);

// What was asked for, if anything was.
std::optional<std::size_t> threads_of(const boost::program_options::variables_map& values);

// Holds as long as it lives.
std::unique_ptr<tbb::global_control> limit_threads(
    const boost::program_options::variables_map& values);

}  // namespace mllmsim::cli
