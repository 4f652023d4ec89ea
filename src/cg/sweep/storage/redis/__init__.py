"""Parts of the store on a server."""
