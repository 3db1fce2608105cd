#include "sim/tables/parquet.hpp"

#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/util/compression.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::tables {
namespace {

constexpr std::int64_t kRowGroupRows = 1 << 20;

// Arrow reports by Status and Parquet throws; both become one exception here, and the functions at
// the end of the file add the path.
void require(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}
template <class T>
T require(arrow::Result<T> result) {
  require(result.status());
  return std::move(result).ValueUnsafe();
}

using ArrayPtr = std::shared_ptr<arrow::Array>;

template <class Builder, class Values>
ArrayPtr build(const Values& values, const std::vector<bool>& valid) {
  Builder builder;
  require(valid.empty() ? builder.AppendValues(values) : builder.AppendValues(values, valid));
  return require(builder.Finish());
}

ArrayPtr texts(const std::vector<std::string>& values) {
  arrow::StringBuilder builder;
  require(builder.AppendValues(values));
  return require(builder.Finish());
}

struct ToArrow {
  const std::vector<bool>& valid;  // empty: all

  ArrayPtr operator()(const std::vector<std::int64_t>& v) {
    return build<arrow::Int64Builder>(v, valid);
  }
  ArrayPtr operator()(const std::vector<double>& v) {
    return build<arrow::DoubleBuilder>(v, valid);
  }
  ArrayPtr operator()(const std::vector<bool>& v) { return build<arrow::BooleanBuilder>(v, valid); }
  ArrayPtr operator()(const StringColumn& column) {
    return require(arrow::DictionaryArray::FromArrays(
        arrow::dictionary(arrow::int32(), arrow::utf8()),
        build<arrow::Int32Builder>(column.indices(), valid), texts(column.dictionary())));
  }
};

std::vector<bool> valid_cells(const Table& table, const std::string& name) {
  const auto it = table.nulls.find(name);
  if (it == table.nulls.end()) return {};
  std::vector<bool> valid(table.rows(), true);
  for (std::size_t i = 0; i < it->second.size(); ++i) valid[i] = !it->second[i];
  return valid;
}

std::shared_ptr<arrow::Table> to_arrow(const Table& table) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<ArrayPtr> arrays;
  for (const auto& [name, column] : table.columns) {
    const std::vector<bool> valid = valid_cells(table, name);
    arrays.push_back(std::visit(ToArrow{valid}, column));
    fields.push_back(arrow::field(name, arrays.back()->type()));
  }
  return arrow::Table::Make(arrow::schema(fields), arrays, static_cast<std::int64_t>(table.rows()));
}

std::shared_ptr<parquet::WriterProperties> writer_properties(Compression compression) {
  const bool zstd = arrow::util::Codec::IsAvailable(arrow::Compression::ZSTD);
  const auto best = zstd ? arrow::Compression::ZSTD : arrow::Compression::SNAPPY;
  return parquet::WriterProperties::Builder()
      .compression(compression == Compression::none ? arrow::Compression::UNCOMPRESSED : best)
      ->max_row_group_length(kRowGroupRows)
      ->build();
}

template <class Array, class Values>
Column column_of(const arrow::ChunkedArray& chunks) {
  using View = decltype(std::declval<const Array&>().GetView(0));
  Values values;
  for (const ArrayPtr& chunk : chunks.chunks()) {
    const auto& array = static_cast<const Array&>(*chunk);
    for (std::int64_t i = 0; i < array.length(); ++i)
      values.push_back(array.IsNull(i) ? View{} : array.GetView(i));
  }
  return values;
}

void read_nulls(const arrow::ChunkedArray& chunks, const std::string& name, Table& table) {
  if (chunks.null_count() == 0) return;
  std::size_t row = 0;
  for (const ArrayPtr& chunk : chunks.chunks())
    for (std::int64_t i = 0; i < chunk->length(); ++i, ++row)
      if (chunk->IsNull(i)) table.set_null(name, row);
}

Column from_arrow(const arrow::ChunkedArray& chunks) {
  switch (chunks.type()->id()) {
    case arrow::Type::INT64:
      return column_of<arrow::Int64Array, std::vector<std::int64_t>>(chunks);
    case arrow::Type::DOUBLE:
      return column_of<arrow::DoubleArray, std::vector<double>>(chunks);
    case arrow::Type::BOOL:
      return column_of<arrow::BooleanArray, std::vector<bool>>(chunks);
    case arrow::Type::STRING:
      return column_of<arrow::StringArray, StringColumn>(chunks);
    case arrow::Type::LARGE_STRING:
      return column_of<arrow::LargeStringArray, StringColumn>(chunks);
    default:
      throw std::runtime_error("has type " + chunks.type()->ToString());
  }
}

std::string to_bytes(const Table& table, const Metadata& metadata, Compression compression) {
  const auto arrow_table = to_arrow(table);
  const auto keys = std::make_shared<arrow::KeyValueMetadata>();
  for (const auto& [key, value] : metadata) keys->Append(key, value);
  const auto sink = require(arrow::io::BufferOutputStream::Create());
  const auto writer = require(parquet::arrow::FileWriter::Open(
      *arrow_table->schema(), arrow::default_memory_pool(), sink, writer_properties(compression)));
  require(writer->WriteTable(*arrow_table, kRowGroupRows));
  require(writer->AddKeyValueMetadata(keys));
  require(writer->Close());
  return require(sink->Finish())->ToString();
}

std::string checked_bytes(const Table& table, const Metadata& metadata,
                          const std::filesystem::path& path, Compression compression) {
  for (const auto& [name, column] : table.columns)
    check(std::visit([](const auto& v) { return v.size(); }, column) == table.rows(),
          "column " + name + " is not as long as its table");
  try {
    return to_bytes(table, metadata, compression);
  } catch (const std::exception& e) {
    throw EnvironmentError(fmt::format("cannot write {}: {}", path.string(), e.what()));
  }
}

}  // namespace

void StringColumn::push_back(std::string_view value) {
  if (!indices_.empty() && dictionary_[static_cast<std::size_t>(indices_.back())] == value)
    return indices_.push_back(indices_.back());
  const auto [it, added] =
      index_of_.try_emplace(std::string(value), static_cast<std::int32_t>(dictionary_.size()));
  if (added) dictionary_.emplace_back(value);
  indices_.push_back(it->second);
}

std::size_t Table::rows() const {
  const auto size = [](const auto& values) { return values.size(); };
  return columns.empty() ? 0 : std::visit(size, columns.front().second);
}

const Column* Table::find(std::string_view name) const {
  for (const auto& [key, column] : columns)
    if (key == name) return &column;
  return nullptr;
}

bool Table::is_null(std::string_view name, std::size_t row) const {
  const auto it = nulls.find(name);
  return it != nulls.end() && row < it->second.size() && it->second[row];
}

void Table::set_null(std::string_view name, std::size_t row) {
  std::vector<bool>& cells = nulls[std::string(name)];
  cells.resize(row + 1);
  cells[row] = true;
}

void write_parquet(const Table& table, const Metadata& metadata, const std::filesystem::path& path,
                   Compression compression) {
  write_file_atomically(path, checked_bytes(table, metadata, path, compression));
}

void write_parquet(std::span<const TableFile> files, const Metadata& metadata) {
  std::vector<FileContents> contents;
  for (const TableFile& file : files)
    contents.push_back(
        {file.path, checked_bytes(file.table, metadata, file.path, Compression::zstd)});
  write_files_atomically(contents);
}

ParquetFile read_parquet(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (exists(status) && !is_regular_file(status))  // a pipe would be waited for
    throw UserError(
        path.string(), "",
        is_directory(status) ? "is a directory, not a file" : "not a file that can be read");
  try {
    const auto input = require(arrow::io::ReadableFile::Open(path.string()));
    const auto reader = require(parquet::arrow::OpenFile(input, arrow::default_memory_pool()));
    std::shared_ptr<arrow::Schema> schema;
    require(reader->GetSchema(&schema));
    ParquetFile file;
    for (int i = 0; i < schema->num_fields(); ++i) {  // one by one: a column is there twice
      const std::string& name = schema->field(i)->name();
      try {
        std::shared_ptr<arrow::ChunkedArray> column;
        require(reader->ReadColumn(i, &column));
        file.table.columns.emplace_back(name, from_arrow(*column));
        if (const auto rows = static_cast<std::size_t>(column->length()); rows != file.table.rows())
          throw std::runtime_error(
              fmt::format("has {} rows, the first column {}", rows, file.table.rows()));
        read_nulls(*column, name, file.table);
      } catch (const std::runtime_error& e) {
        throw std::runtime_error("column " + name + " " + e.what());
      }
    }
    if (const auto& metadata = schema->metadata())
      for (std::int64_t i = 0; i < metadata->size(); ++i)
        file.metadata.emplace(metadata->key(i), metadata->value(i));
    return file;
  } catch (const std::exception& e) {
    throw EnvironmentError(fmt::format("cannot read {}: {}", path.string(), e.what()));
  }
}

}  // namespace mllmsim::tables
