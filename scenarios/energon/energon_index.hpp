// The index that Megatron-Energon keeps of a WebDataset, .nv-meta/index.sqlite: sizes of all parts
// of all samples, and of pictures, videos and recordings if it was prepared with
// `energon prepare --media-metadata-by-extension`. Apart from the other readers, so that the
// library needs no SQLite.
//
//   samples(tar_file_id, sample_key, sample_index, ...)
//   sample_parts(tar_file_id, sample_index, part_name, content_byte_offset, content_byte_size)
//   media_metadata(entry_key, metadata_type, metadata_json): of "sample_key.part_name", "image"
//     {"width", "height", ...} or "av" {"video_duration", "video_width", "audio_duration", ...}
//   (src/megatron/energon/flavors/webdataset/indexing.py, media/metadata.py)
//
// Parts of text count by their bytes. Nothing else of the data set is read.
#pragma once

namespace mllmsim::scenarios {

// From here on read_media() takes .sqlite files.
void register_energon_index();

}  // namespace mllmsim::scenarios
