# examples/recipes/varnish.vcl
vcl 4.1;

backend default { .host = "127.0.0.1"; .port = "8080"; }

sub vcl_recv {
  # Varnish ends chunked content that breaks off as if it were whole: the service would store a part for the whole.
  if (req.method ~ "^(POST|PUT|PATCH)$" && !req.http.Content-Length) { return (synth(411)); }
}
