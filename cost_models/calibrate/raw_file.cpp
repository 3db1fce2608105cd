#include "cost_models/calibrate/raw_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sim/base/errors.hpp"

namespace mllmsim::calibrate {
namespace json = boost::json;
namespace {

std::string header_line(const Header& header, const std::string& date) {
  json::object fields;
  for (const auto& [name, value] : header.identity) fields[name] = value;
  fields["clock_mhz"] = header.clock_mhz;
  fields["date"] = date;
  return json::serialize(json::object{{"header", std::move(fields)}});
}

// The task's own fields, then the results: six digits, since timings repeat to three at best.
std::string measurement_line(const Task& task, const Summary& summary) {
  const bool ratio = std::holds_alternative<OverlapTask>(task);
  std::string line = key(task);
  line.pop_back();  // the closing brace
  return line + fmt::format(R"(,"{}":{:#.6g},"spread":{:.6f},"samples":{}}})",
                            ratio ? "slowdown" : "us", summary.median * (ratio ? 1 : 1e6),
                            summary.spread, summary.samples);
}

}  // namespace

RawFile::RawFile(std::filesystem::path path, const Header& header, const std::string& date)
    : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot be opened for writing");
  try {
    read(header);
    if (::lseek(descriptor_, 0, SEEK_END) == 0) write_line(header_line(header, date));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RawFile::~RawFile() { ::close(descriptor_); }

void RawFile::read(const Header& header) {
  std::ifstream in(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) fail("cannot be read");
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // torn
    const std::string line = text.substr(begin, end - begin);
    const std::string where = fmt::format("{}:{}", path_.string(), number);
    if (number == 1) {
      check_header(line, header);
    } else {
      json::error_code error;
      const json::value value = json::parse(line, error);
      // A block of a crashed file system may come back as zeros: at the end it counts as torn too.
      if ((error || !value.is_object()) && end + 1 == text.size()) break;
      if (error || !value.is_object()) throw UserError(where, "", "expected a JSON object");
      measured_.insert(key(task_from_json(value.get_object(), where)));
    }
    begin = end + 1;
  }
  if (begin < text.size() && ::ftruncate(descriptor_, static_cast<off_t>(begin)) != 0)
    fail("cannot be shortened to its last whole line");
}

void RawFile::check_header(const std::string& line, const Header& header) const {
  const std::string where = path_.string() + ":1";
  json::error_code error;
  const json::value value = json::parse(line, error);
  const json::value* found =
      !error && value.is_object() ? value.get_object().if_contains("header") : nullptr;
  if (!found || !found->is_object())
    throw UserError(where, "", "not a file of raw measurements: no header");
  std::vector<Problem> problems;
  for (const auto& [name, expected] : header.identity) {
    const json::value* field = found->get_object().if_contains(name);
    const std::string was = field && field->is_string() ? field->get_string().c_str() : "nothing";
    if (was != expected)
      problems.push_back({where, "header." + name,
                          fmt::format("measured with \"{}\", but this is \"{}\"; use another --out",
                                      was, expected)});
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

void RawFile::append(const Task& task, const Summary& summary) {
  write_line(measurement_line(task, summary));
  measured_.insert(key(task));
}

void RawFile::write_line(const std::string& line) {
  const std::string text = line + '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be written");
    done += static_cast<std::size_t>(n);
  }
  // Pipes and /dev/stdout cannot be synchronised, and need not be.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail("cannot be written");
}

void RawFile::fail(const char* what) const {
  throw EnvironmentError(fmt::format("{}: {}: {}", path_.string(), what, std::strerror(errno)));
}

}  // namespace mllmsim::calibrate
